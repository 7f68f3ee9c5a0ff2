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
	path, err := redisProgram()
	var version []byte
	if err == nil {
		version, err = exec.Command(path, "--version").Output()
	}
	if err != nil {
		fmt.Println("clusters and sentinels: NOT TESTED:", err)
		os.Exit(code)
	}
	fmt.Printf("clusters and sentinels: %s: %s", path, version)
	os.Exit(code)
}

// silent logs nothing.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
