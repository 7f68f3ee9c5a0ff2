package overrides

// This file is what a source is, and how it says that it has nothing.

import (
	"context"
	"errors"
)

// A Source holds the overrides of a limiter.
type Source interface {
	// Load returns all overrides. The caller may keep the map and does not change
	// it, nor may the source. An empty map, nil too, removes all overrides, so a
	// source that finds nothing should say [ErrAbsent] instead.
	//
	// An error that is [ErrAbsent] or [ErrMalformed] by errors.Is is reported as
	// such, any other as unreachable. Load returns soon after ctx ends; one that
	// cannot, such as a read from a dead mount, holds no refresh beyond its timeout, and
	// is not called again until it has returned. It is called by one goroutine at a time.
	Load(ctx context.Context) (map[string]uint64, error)
}

// A SourceFunc is a function that is a [Source].
type SourceFunc func(ctx context.Context) (map[string]uint64, error)

// Load calls the function.
func (f SourceFunc) Load(ctx context.Context) (map[string]uint64, error) { return f(ctx) }

var (
	// ErrAbsent says that a source does not exist, which removes no override.
	ErrAbsent = errors.New("overrides: absent")
	// ErrMalformed says that a source holds something else than overrides.
	ErrMalformed = errors.New("overrides: malformed")
)
