package envoylimit

// This file is the units of time, and the limiters that count in them.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hanzoai/limiters/ratelimit"
)

const day = 24 * time.Hour

// lengths are the units. A month has 30 days and a year 365, counted, as all of them,
// from the Unix epoch.
var lengths = [...]time.Duration{
	pb.RateLimitResponse_RateLimit_SECOND: time.Second,
	pb.RateLimitResponse_RateLimit_MINUTE: time.Minute,
	pb.RateLimitResponse_RateLimit_HOUR:   time.Hour,
	pb.RateLimitResponse_RateLimit_DAY:    day,
	pb.RateLimitResponse_RateLimit_WEEK:   7 * day,
	pb.RateLimitResponse_RateLimit_MONTH:  30 * day,
	pb.RateLimitResponse_RateLimit_YEAR:   365 * day,
}

// unitOf returns the unit of a name, in any case.
func unitOf(name string) (unit pb.RateLimitResponse_RateLimit_Unit, known bool) {
	value, known := pb.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(name)]
	unit = pb.RateLimitResponse_RateLimit_Unit(value)
	return unit, known && lengthOf(unit) > 0
}

// lengthOf returns a unit's length; 0 of an unknown one.
func lengthOf(unit pb.RateLimitResponse_RateLimit_Unit) time.Duration {
	if unit < 0 || int(unit) >= len(lengths) {
		return 0
	}
	return lengths[unit]
}

// A window is what a limiter counts in.
type window struct {
	unit    pb.RateLimitResponse_RateLimit_Unit
	sliding bool
}

func (w window) String() string {
	name := strings.ToLower(w.unit.String())
	if w.sliding {
		name += "-sliding"
	}
	return name
}

var errClosed = errors.New("envoylimit: the service is closed")

// A set is the limiters of a service: one for each window that a rule or a request asked
// for. It is safe for concurrent use.
type set struct {
	cfg     ratelimit.Config   // immutable; the window is filled in
	options []ratelimit.Option // immutable

	limiters [len(lengths)][2]atomic.Pointer[ratelimit.Limiter] // by unit and kind

	mu     sync.Mutex
	closed bool                 // guarded by mu
	made   []*ratelimit.Limiter // guarded by mu; in the order of their making
}

// of returns the limiter of a window, which it makes if it is the first to ask. The unit must
// be known.
func (s *set) of(w window) (*ratelimit.Limiter, error) {
	kind := 0
	if w.sliding {
		kind = 1
	}
	place := &s.limiters[w.unit][kind]
	if l := place.Load(); l != nil {
		return l, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := place.Load(); l != nil {
		return l, nil
	}
	if s.closed {
		return nil, errClosed
	}
	l, err := ratelimit.New(s.configOf(w), s.options...)
	if err != nil {
		return nil, fmt.Errorf("envoylimit: the limiter of window %v: %w", w, err)
	}
	s.made = append(s.made, l)
	place.Store(l)
	return l, nil
}

// configOf is the configuration of one window's limiter. A fixed window counts refused
// requests too, as the original does; in a sliding one that would lock out for ever who
// never slows down.
func (s *set) configOf(w window) ratelimit.Config {
	c := s.cfg
	c.WindowInterval = lengthOf(w.unit)
	c.Window, c.CountLimited = ratelimit.WindowFixed, true
	if w.sliding {
		c.Window, c.CountLimited = ratelimit.WindowSliding, false
	}
	c.Inclusive, c.StrictFirstContact = true, true
	c.SyncInterval = min(c.WindowInterval/4, 5*time.Minute)
	c.LocalCacheIdleTimeout = max(c.WindowInterval, 5*min(c.WindowInterval, time.Minute))
	c.LocalCacheTTL = 2 * c.LocalCacheIdleTimeout
	c.RedisKeyPrefix += "/" + w.String()
	c.Scope = w.String()
	return c
}

func (s *set) all() []*ratelimit.Limiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*ratelimit.Limiter(nil), s.made...)
}

// close closes all limiters at once, so that they share the time that ctx leaves.
func (s *set) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	all := s.made
	s.mu.Unlock()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, l := range all {
		closing.Go(func() { errs[i] = l.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}
