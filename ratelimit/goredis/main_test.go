package goredis

// This file says what the tests ran on.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // the client logs every refused connection
	code := m.Run()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if version, err := exec.Command(name, "--version").Output(); err == nil {
			fmt.Printf("clusters and sentinels: %s: %s", name, version)
			os.Exit(code)
		}
	}
	fmt.Println("clusters and sentinels: NOT TESTED, there is no redis-server or valkey-server on PATH")
	os.Exit(code)
}

// silent logs nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
