// This file is the backend that is lent: the server at REDIS_ADDR.

package redistest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// lent is a server that others use too: nothing may be done to it.
type lent struct{}

func startAddress(_ testing.TB, s *settings) (instance, string, error) {
	addr := os.Getenv("REDIS_ADDR")
	switch {
	case addr == "":
		return nil, "", fmt.Errorf("%w: REDIS_ADDR is not set", errPassed)
	case s.own:
		return nil, "", errPassed
	}
	if !strings.Contains(addr, "://") {
		addr = "redis://" + addr
	}
	describe(Address, "REDIS_ADDR")
	return lent{}, addr, nil
}

func (lent) stop()                       {}
func (lent) kill() error                 { return errNot }
func (lent) pause() error                { return errNot }
func (lent) resume() error               { return errNot }
func (lent) restart() error              { return errNot }
func (lent) advance(time.Duration) error { return errNot }
