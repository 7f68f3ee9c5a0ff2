package main

// This file serves gRPC: the service, health and reflection.

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

// listen opens where gRPC is served. A socket file that a dead process left is removed.
func (s *settings) listen() (net.Listener, error) {
	if s.GrpcUds == "" {
		return net.Listen("tcp", net.JoinHostPort(s.GrpcHost, strconv.Itoa(int(s.GrpcPort))))
	}
	if info, err := os.Lstat(s.GrpcUds); err == nil && info.Mode()&os.ModeSocket != 0 {
		if connection, err := net.DialTimeout("unix", s.GrpcUds, time.Second); err == nil {
			_ = connection.Close()
			return nil, fmt.Errorf("GRPC_UDS: %s is in use", s.GrpcUds)
		}
		if err := os.Remove(s.GrpcUds); err != nil {
			return nil, err
		}
	}
	return net.Listen("unix", s.GrpcUds)
}

func (s *settings) grpcServer() (*grpc.Server, error) {
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: s.GrpcMaxConnectionAge, MaxConnectionAgeGrace: s.GrpcMaxConnectionAgeGrace,
		}),
		// A decision takes a microsecond: workers that stay spare the goroutine, whose stack grows, for each.
		grpc.NumStreamWorkers(uint32(2 * runtime.GOMAXPROCS(0))),
	}
	if s.GrpcServerUseTLS {
		security, err := s.serverTLS()
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(security)))
	}
	server := grpc.NewServer(options...)
	reflection.Register(server)
	return server, nil
}

// serverTLS reads the certificate anew when its file changes, as when it is renewed.
func (s *settings) serverTLS() (*tls.Config, error) {
	held := &keyPair{cert: s.GrpcServerTLSCert, key: s.GrpcServerTLSKey}
	if _, err := held.get(nil); err != nil {
		return nil, fmt.Errorf("GRPC_SERVER_TLS_CERT, GRPC_SERVER_TLS_KEY: %w", err)
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: held.get}
	if s.GrpcClientTLSCACert != "" {
		pool, err := certificates("GRPC_CLIENT_TLS_CACERT", s.GrpcClientTLSCACert)
		if err != nil {
			return nil, err
		}
		security.ClientCAs, security.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return security, nil
}

// A keyPair is a certificate and its key in files. It is safe for concurrent use.
type keyPair struct {
	cert, key string
	loaded    atomic.Pointer[loadedPair]
}

type loadedPair struct {
	pair     *tls.Certificate
	modified time.Time
}

// get returns the pair; the one before if a renewed one cannot be read (yet).
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	before := k.loaded.Load()
	info, err := os.Stat(k.cert)
	if err == nil && before != nil && info.ModTime().Equal(before.modified) {
		return before.pair, nil
	}
	if err == nil {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(k.cert, k.key); err == nil {
			k.loaded.Store(&loadedPair{&pair, info.ModTime()})
			return &pair, nil
		}
	}
	if before != nil {
		return before.pair, nil
	}
	return nil, err
}
