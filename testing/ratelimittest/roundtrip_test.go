package ratelimittest_test

// This file tests the network between a limiter and its store.

import (
	"testing"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// A batch takes effect after half of the round trip, and the node learns of it after the
// other half.
func TestARoundTripTakesEffectHalfWay(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 1, limit(100))
	f.Store().RoundTrip(60 * time.Millisecond)
	f.Node(0).Check("k", 7)
	f.Advance(time.Second) // the tick begins
	for _, row := range []struct {
		after       time.Duration
		held        int64
		undelivered uint64
	}{
		{29 * time.Millisecond, 0, 7},
		{31 * time.Millisecond, 7, 7},
		{59 * time.Millisecond, 7, 7},
		{60 * time.Millisecond, 7, 0},
	} {
		f.Advance(row.after - f.Clock().Time().Sub(ratelimittest.NewClock().Time().Add(time.Second)))
		held, _ := f.Store().Total(counterKey(limit(100), "k", f.Clock().Time()))
		if st := f.Node(0).Stats(); held != row.held || st.Undelivered != row.undelivered {
			t.Errorf("after %v the store holds %d units and %d are undelivered; want %d and %d", row.after, held, st.Undelivered, row.held, row.undelivered)
		}
	}
}

// Beyond the time that a limiter waits, however patient it has become, the reply is lost,
// and then the request too: the units arrive once all the same.
func TestARoundTripThatTakesTooLong(t *testing.T) {
	t.Parallel()
	for _, trip := range []time.Duration{20 * time.Second, 40 * time.Second, time.Hour} {
		f := ratelimittest.NewFleet(t, 1, limit(100))
		f.Store().RoundTrip(trip)
		f.Node(0).Check("k", 7)
		f.Advance(10 * time.Second)
		if st := f.Node(0).Stats(); st.Delivered != 0 || st.Undelivered != 7 {
			t.Errorf("%v: delivered %d, undelivered %d; want 0 and 7", trip, st.Delivered, st.Undelivered)
		}
		f.Store().RoundTrip(10 * time.Millisecond)
		f.Advance(5 * time.Second)
		held, _ := f.Store().Total(counterKey(limit(100), "k", f.Clock().Time()))
		if st := f.Node(0).Stats(); held != 7 || st.Delivered != 7 {
			t.Errorf("%v, then 10ms: the store holds %d units, %d are delivered; want 7", trip, held, st.Delivered)
		}
	}
}

// A round trip and a delay add up.
func TestARoundTripAndADelay(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewFleet(t, 1, limit(100))
	f.Store().RoundTrip(20 * time.Millisecond)
	f.Store().Delay(30 * time.Millisecond)
	f.Node(0).Check("k", 7)
	f.Advance(time.Second + 49*time.Millisecond)
	if st := f.Node(0).Stats(); st.Delivered != 0 {
		t.Error("the reply is there before its time")
	}
	f.Advance(time.Millisecond)
	if st := f.Node(0).Stats(); st.Delivered != 7 {
		t.Error("the reply is not there in time")
	}
}
