package backend

// This file is the backend on a server in this process, for machines without one.

import (
	"fmt"

	"github.com/alicebob/miniredis/v2"

	"github.com/hanzoai/limiters/internal/redisurl"
	"github.com/hanzoai/limiters/ratelimit"
)

// embedded is one miniredis on a loopback port. It is reached as any server is.
type embedded struct {
	*Servers
	server *miniredis.Miniredis
}

// newEmbedded starts the server and puts its URL into the configuration.
func newEmbedded(config *ratelimit.Config) (*embedded, error) {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("the embedded server: %w", err)
	}
	config.RedisURLs = []string{"embedded=redis://" + server.Addr()}
	targets, err := redisurl.ParseList(config.RedisURLs)
	if err == nil {
		var s *Servers
		if s, err = NewServers(targets); err == nil {
			return &embedded{Servers: s, server: server}, nil
		}
	}
	server.Close()
	return nil, fmt.Errorf("the embedded server: %w", err)
}

func (e *embedded) Kind() string { return "embedded" }

func (e *embedded) Close() error {
	err := e.Servers.Close()
	e.server.Close()
	return err
}
