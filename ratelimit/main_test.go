package ratelimit

// This file ends the package's tests: no goroutine may be left.

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
