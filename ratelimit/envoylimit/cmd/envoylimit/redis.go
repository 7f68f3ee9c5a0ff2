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
	RedisType          string        `env:"REDIS_TYPE" envDefault:"SINGLE"`
	RedisSocketType    string        `env:"REDIS_SOCKET_TYPE" envDefault:"unix"`
	RedisURL           string        `env:"REDIS_URL" envDefault:"/var/run/nutcracker/ratelimit.sock"`
	RedisAuth          string        `env:"REDIS_AUTH"`
	RedisSentinelAuth  string        `env:"REDIS_SENTINEL_AUTH"`
	RedisTLS           bool          `env:"REDIS_TLS"`
	RedisTLSClientCert string        `env:"REDIS_TLS_CLIENT_CERT"`
	RedisTLSClientKey  string        `env:"REDIS_TLS_CLIENT_KEY"`
	RedisTLSCACert     string        `env:"REDIS_TLS_CACERT"`
	RedisTimeout       time.Duration `env:"REDIS_TIMEOUT" envDefault:"100ms"`
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
	timeout := s.RedisTimeout.String()
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
	switch kind := strings.ToLower(s.RedisType); {
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
		return cfg, nil, close, fmt.Errorf("REDIS_TYPE=%q: want SINGLE, SENTINEL or CLUSTER", s.RedisType)
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
	if strings.Contains(s.RedisURL, "://") {
		return s.RedisURL, nil
	}
	address := url.URL{Host: s.RedisURL}
	switch socket := strings.ToLower(s.RedisSocketType); {
	case socket == "tcp" && s.RedisTLS:
		address.Scheme = "rediss"
	case socket == "tcp":
		address.Scheme = "redis"
	case socket == "unix" && s.RedisTLS:
		return "", errors.New("REDIS_TLS=true needs REDIS_SOCKET_TYPE=tcp")
	case socket == "unix":
		address = url.URL{Scheme: "unix", Path: s.RedisURL}
	default:
		return "", fmt.Errorf("REDIS_SOCKET_TYPE=%q: want tcp or unix", s.RedisSocketType)
	}
	if user, password := parseAuth(s.RedisAuth); password != "" {
		address.User = url.UserPassword(user, password)
	}
	return strings.ReplaceAll(address.String(), ",", "%2C"), nil
}

// client connects to a cluster, or to what the sentinels say.
func (s *settings) client(kind string, security *tls.Config) (redis.UniversalClient, []ratelimit.Partition, error) {
	addresses := strings.Split(s.RedisURL, ",")
	user, password := parseAuth(s.RedisAuth)
	if kind == "cluster" {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addresses, Username: user, Password: password, TLSConfig: security, DialTimeout: time.Second,
			DialerRetries: 1, ReadTimeout: s.RedisTimeout, WriteTimeout: s.RedisTimeout,
		})
		partitions, err := goredis.Partitions(client, 16)
		return client, partitions, err
	}
	if len(addresses) < 2 {
		return nil, nil, fmt.Errorf("REDIS_URL=%q: want the name of the master and the sentinels, separated by commas", s.RedisURL)
	}
	sentinelUser, sentinelPassword := parseAuth(s.RedisSentinelAuth)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: addresses[0], SentinelAddrs: addresses[1:], Username: user, Password: password,
		SentinelUsername: sentinelUser, SentinelPassword: sentinelPassword, TLSConfig: security, DialTimeout: time.Second,
		ReadTimeout: s.RedisTimeout, WriteTimeout: s.RedisTimeout,
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
	if !s.RedisTLS {
		return nil, nil
	}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.RedisTLSCACert != "" {
		pool, err := certificates("REDIS_TLS_CACERT", s.RedisTLSCACert)
		if err != nil {
			return nil, err
		}
		security.RootCAs = pool
	}
	if s.RedisTLSClientCert != "" {
		pair, err := tls.LoadX509KeyPair(s.RedisTLSClientCert, s.RedisTLSClientKey)
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
