package ratelimittest_test

// This file tests clients that obey.

import (
	"reflect"
	"testing"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A client that was told to wait asks again when it has waited, and not before: so every
// limited request has one retry, but for those that the end cuts off.
func TestClientsWaitAsLongAsTheyAreTold(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 2, limit(20))
	m := ratelimittest.Clients{
		Keys: []string{"a", "b", "c"}, Pause: 500 * time.Millisecond, Units: 3, WholeSeconds: true, Seed: 1,
	}.Run(f, 20*time.Minute)
	if m.Limited == 0 || m.Requests < 100 {
		t.Errorf("nothing happened: %+v", m)
	}
	if m.Retries > m.Limited || m.Retries+3 < m.Limited {
		t.Errorf("%d retries of %d limited requests of 3 clients", m.Retries, m.Limited)
	}
	if m.RefusedAgain > m.Retries {
		t.Errorf("%d retries were refused of %d", m.RefusedAgain, m.Retries)
	}
	limited := uint64(0)
	for _, key := range []string{"a", "b", "c"} {
		limited += m.Decisions.Report(key).Limited
	}
	st := f.Node(0).Stats()
	other := f.Node(1).Stats()
	if limited != m.Limited || st.Limited+other.Limited != m.Limited {
		t.Errorf("%d limited by the recorder and %d by the nodes, want %d", limited, st.Limited+other.Limited, m.Limited)
	}
	if elapsed := f.Clock().Time().Sub(ratelimittest.NewClock().Time()); elapsed != 20*time.Minute {
		t.Errorf("%v passed, want 20m", elapsed)
	}
}

// One that no wait helps does not ask for ever at the same moment.
func TestAClientThatNoWaitHelpsGivesUp(t *testing.T) {
	t.Parallel()
	cfg := limit(0)
	f := ratelimittest.NewFleet(t, 1, cfg)
	m := ratelimittest.Clients{Keys: []string{"a"}, Pause: time.Second}.Run(f, time.Hour)
	if m.Requests != 1 || m.Limited != 1 || m.Retries != 0 {
		t.Errorf("%+v, want one request", m)
	}
}

func TestClientsAreDeterministic(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) ratelimittest.Manners {
		f := ratelimittest.NewFleet(t, 3, limit(10))
		m := ratelimittest.Clients{Keys: []string{"a", "b"}, Pause: time.Second, Seed: seed}.Run(f, 10*time.Minute)
		m.Decisions = nil
		return m
	}
	if first, second := run(1), run(1); !reflect.DeepEqual(first, second) {
		t.Errorf("%+v, then %+v", first, second)
	}
	if first, other := run(1), run(2); reflect.DeepEqual(first, other) {
		t.Errorf("another seed made the same requests: %+v", first)
	}
}
