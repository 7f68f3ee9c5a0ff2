package ratelimit

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// A partition without traffic is asked at the first tick and every ten seconds, by a look that
// leaves nothing behind.
func TestAPartitionWithoutTrafficIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	for _, row := range []struct {
		advance   time.Duration
		questions int
	}{
		{time.Second, 1},
		{9 * time.Second, 1},
		{time.Second, 2},
		{time.Minute, 8},
	} {
		w.clock.Advance(row.advance)
		if n.link.questions != row.questions {
			t.Errorf("after %v more: %d questions, want %d", row.advance, n.link.questions, row.questions)
		}
	}
	if s := n.Stats(); !s.Partitions[0].Up || s.Partitions[0].RoundTrips != 0 || len(w.mem.Keys()) != 0 {
		t.Errorf("Stats() = %+v; the store holds %v", s.Partitions[0], w.mem.Keys())
	}
	for range 60 { // traffic answers the question
		n.check("k", 1)
		w.clock.Advance(time.Second)
	}
	if n.link.questions != 8 {
		t.Errorf("%d questions beside traffic, want no more", n.link.questions-8)
	}
}

// A store that dies without traffic is said to be down within twelve seconds, and one that
// never was there within three.
func TestAnIdlePartitionThatDiesIsNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	w.clock.Advance(21 * time.Second)
	n.link.breaks(errUnreachable, nil)
	for second := 1; ; second++ {
		w.clock.Advance(time.Second)
		if up := n.Stats().Partitions[0].Up; up != (strings.Count(n.log.String(), "is down") == 0) {
			t.Fatalf("up %v, and the log says %q", up, n.log)
		} else if !up {
			break
		}
		if second > 12 {
			t.Fatal("nobody notices")
		}
	}
	n.link.heals()
	w.clock.Advance(time.Second)
	if !n.Stats().Partitions[0].Up || !strings.Contains(n.log.String(), "up again") {
		t.Errorf("after its return: %s", n.log)
	}

	never := w.node(nil)
	never.link.breaks(errUnreachable, nil)
	w.clock.Advance(3 * time.Second)
	never.logs("never there", []string{"is down", "cause=unreachable", "attempts=3"})
}

func TestSyncOfNothingSaysWhetherThePartitionIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.sync()
	n.link.breaks(errUnreachable, nil)
	var failed *PartitionError
	if err := n.Sync(context.Background()); !errors.As(err, &failed) || !errors.Is(err, errUnreachable) {
		t.Errorf("Sync() = %v, want why the partition cannot be reached", err)
	}
	if err := n.Close(context.Background()); err != nil {
		t.Errorf("Close() = %v: there was nothing to deliver", err)
	}
	if n.link.questions != 2 {
		t.Errorf("%d questions, want none by Close", n.link.questions)
	}
}

// What is dropped without an outage is told, too.
func TestUnitsDroppedWithoutAnOutageAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	n.check("k", 1)
	w.clock.Advance(time.Second)
	n.CheckAt("k", 5, time.Unix(0, n.read().wall).Add(-3*time.Minute))
	n.audit.count("k", n.read().epoch-3, 5)
	n.check("k", 1)
	w.clock.Advance(time.Second)
	n.logs("stale", []string{"level=WARN", "units were dropped", "units=5", "partition=memory"})
}
