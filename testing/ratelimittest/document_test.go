package ratelimittest_test

// This file tests the baseline against what the design document says, its faults
// included.

import (
	"testing"
	"time"

	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// documentPass offers single units to a node until one is limited.
func documentPass(f *ratelimittest.DocumentFleet, node int) (passed int) {
	for passed < 10_000 && f.Offer(node, "k", 1) {
		passed++
	}
	return passed
}

func TestTheDocumentsNodesLearnByReads(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewDocumentFleet(time.Time{}, 2, limit(100))
	f.Offer(0, "k", 60)
	f.Advance(time.Second)
	f.Offer(1, "k", 1) // first contact: asks for a read
	f.Advance(2 * time.Second)
	// 61 of the fleet, less 100/60 for each second since the tick at 1.5 s
	if got := documentPass(f, 1); got != 41 {
		t.Errorf("node 1 admits %d more units, want 41", got)
	}
}

// A key whose pending units reach the threshold is limited until the entry expires,
// however long it is left alone in between.
func TestTheDocumentLocksAKeyOut(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewDocumentFleet(time.Time{}, 1, limit(100))
	f.Offer(0, "k", 1)
	f.Advance(2 * time.Second)
	documentPass(f, 0)
	f.Advance(2 * time.Second)
	documentPass(f, 0)
	for minute := range 9 {
		f.Advance(time.Minute)
		if f.Offer(0, "k", 100) {
			t.Fatalf("allowed in minute %d", minute)
		}
	}
	f.Advance(time.Minute)
	if !f.Offer(0, "k", 100) {
		t.Error("limited after the entry expired")
	}
}

// What a failed pipeline carried is lost.
func TestTheDocumentLosesWhatFails(t *testing.T) {
	t.Parallel()
	f := ratelimittest.NewDocumentFleet(time.Time{}, 1, limit(100))
	f.Link(0).Fail(ratelimittest.Unreachable)
	f.Offer(0, "k", 5)
	f.Advance(2 * time.Second)
	f.Link(0).Heal()
	f.Offer(0, "k", 3)
	f.Advance(2 * time.Second)
	if r := f.Requests(); r.Writes != 1 || r.Attempts != 2 || r.Reads != 0 {
		t.Errorf("%+v, want one write in two attempts", r)
	}
}
