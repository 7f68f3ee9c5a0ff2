package main

// This file connects to Redis as the original's settings say.

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/goredis"
)

type redisSettings struct {
	Type         string        `env:"REDIS_TYPE" envDefault:"SINGLE"`
	SocketType   string        `env:"REDIS_SOCKET_TYPE" envDefault:"unix"`
	URL          string        `env:"REDIS_URL" envDefault:"/var/run/nutcracker/ratelimit.sock"`
	Auth         string        `env:"REDIS_AUTH"`
	SentinelAuth string        `env:"REDIS_SENTINEL_AUTH"`
	TLS          bool          `env:"REDIS_TLS"`
	ClientCert   string        `env:"REDIS_TLS_CLIENT_CERT"`
	ClientKey    string        `env:"REDIS_TLS_CLIENT_KEY"`
	CACert       string        `env:"REDIS_TLS_CACERT"`
	Timeout      time.Duration `env:"REDIS_TIMEOUT" envDefault:"100ms"`
}

// limiterPrefix begins the names of the library's own variables.
const limiterPrefix = ratelimit.DefaultPrefix

// limiter returns the limiters' configuration: the library's own variables, and the original's for
// Redis, which those of the library override. close ends what it opened.
func (s *settings) limiter(environ map[string]string) (cfg ratelimit.Config, options []ratelimit.Option, close func(), err error) {
	close = func() {}
	own := maps.Clone(environ)
	set := func(name, value string) {
		if own[limiterPrefix+name] == "" {
			own[limiterPrefix+name] = value
		}
	}
	timeout := s.Redis.Timeout.String()
	set("READ_TIMEOUT_MS", timeout)
	set("WRITE_TIMEOUT_MS", timeout)
	set("REDIS_KEY_PREFIX", s.CacheKeyPrefix+"envoylimit")
	security, err := s.tls()
	if err != nil {
		return cfg, nil, close, err
	}
	if security != nil {
		options = append(options, ratelimit.WithTLS(security))
	}
	var made []ratelimit.Partition
	switch kind := strings.ToLower(s.Redis.Type); {
	case own[limiterPrefix+"REDIS_URLS"] != "":
	case kind == "single":
		address, err := s.single()
		if err != nil {
			return cfg, nil, close, err
		}
		set("REDIS_URLS", address)
	case kind == "cluster" || kind == "sentinel":
		set("REDIS_URLS", "memory://") // not used: the partitions are
		var client redis.UniversalClient
		if client, made, err = s.client(kind, security); err != nil {
			return cfg, nil, close, err
		}
		close = func() { _ = client.Close() }
		options = append(options, ratelimit.WithPartitions(made...))
	default:
		return cfg, nil, close, fmt.Errorf("REDIS_TYPE=%q: want SINGLE, SENTINEL or CLUSTER", s.Redis.Type)
	}
	cfg, err = fromEnviron(own)
	return cfg, options, close, err
}

// fromEnviron is ratelimit.ConfigFromEnv of an environment: what was added to it goes into that of the
// process, which is all that ConfigFromEnv reads.
func fromEnviron(environ map[string]string) (ratelimit.Config, error) {
	for name, value := range environ {
		if strings.HasPrefix(name, limiterPrefix) && os.Getenv(name) != value {
			if err := os.Setenv(name, value); err != nil {
				return ratelimit.Config{}, err
			}
		}
	}
	return ratelimit.ConfigFromEnv()
}

// single returns the URL of one server.
func (s *settings) single() (string, error) {
	if strings.Contains(s.Redis.URL, "://") {
		return s.Redis.URL, nil
	}
	address := url.URL{Host: s.Redis.URL}
	switch socket := strings.ToLower(s.Redis.SocketType); {
	case socket == "tcp" && s.Redis.TLS:
		address.Scheme = "rediss"
	case socket == "tcp":
		address.Scheme = "redis"
	case socket == "unix" && s.Redis.TLS:
		return "", errors.New("REDIS_TLS=true needs REDIS_SOCKET_TYPE=tcp")
	case socket == "unix":
		address = url.URL{Scheme: "unix", Path: s.Redis.URL}
	default:
		return "", fmt.Errorf("REDIS_SOCKET_TYPE=%q: want tcp or unix", s.Redis.SocketType)
	}
	if user, password := parseAuth(s.Redis.Auth); password != "" {
		address.User = url.UserPassword(user, password)
	}
	return strings.ReplaceAll(address.String(), ",", "%2C"), nil
}

// client connects to a cluster, or to what the sentinels say.
func (s *settings) client(kind string, security *tls.Config) (redis.UniversalClient, []ratelimit.Partition, error) {
	addresses := strings.Split(s.Redis.URL, ",")
	user, password := parseAuth(s.Redis.Auth)
	if kind == "cluster" {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addresses, Username: user, Password: password, TLSConfig: security, DialTimeout: time.Second,
			DialerRetries: 1, ReadTimeout: s.Redis.Timeout, WriteTimeout: s.Redis.Timeout,
		})
		partitions, err := goredis.Partitions(client, 16)
		return client, partitions, err
	}
	if len(addresses) < 2 {
		return nil, nil, fmt.Errorf("REDIS_URL=%q: want the name of the master and the sentinels, separated by commas", s.Redis.URL)
	}
	sentinelUser, sentinelPassword := parseAuth(s.Redis.SentinelAuth)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: addresses[0], SentinelAddrs: addresses[1:], Username: user, Password: password,
		SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword, TLSConfig: security, DialTimeout: time.Second,
		ReadTimeout: s.Redis.Timeout, WriteTimeout: s.Redis.Timeout,
	})
	store, err := goredis.New(client)
	return client, []ratelimit.Partition{{Name: addresses[0], Store: store}}, err
}

// parseAuth takes apart password or user:password.
func parseAuth(auth string) (user, password string) {
	if user, password, found := strings.Cut(auth, ":"); found {
		return user, password
	}
	return "", auth
}

// tls returns what connections to Redis are made with; nil without REDIS_TLS.
func (s *settings) tls() (*tls.Config, error) {
	if !s.Redis.TLS {
		return nil, nil
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.Redis.CACert != "" {
		pool, err := certificates("REDIS_TLS_CACERT", s.Redis.CACert)
		if err != nil {
			return nil, err
		}
		security.RootCAs = pool
	}
	if s.Redis.ClientCert != "" {
		pair, err := tls.LoadX509KeyPair(s.Redis.ClientCert, s.Redis.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("REDIS_TLS_CLIENT_CERT, REDIS_TLS_CLIENT_KEY: %w", err)
		}
		security.Certificates = []tls.Certificate{pair}
	}
	return security, nil
}

// certificates reads a file of CA certificates; variable is what named it.
func certificates(variable, path string) (*x509.CertPool, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM", variable, path)
	}
	return pool, nil
}
