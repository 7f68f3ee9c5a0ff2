// Package store is the contract between a limiter and whatever holds the
// fleet's counts for one partition: counters that expire, and a number that
// makes a batch count once.
//
// The library implements it twice: as a Lua script on Redis and in plain Go
// memory. A third implementation is welcome; the conformance suite in
// testing/ratelimittest says whether it keeps the contract.
//
// # Exactly once
//
// A batch is numbered. A store applies a number at most once per sequence key,
// however often the batch is sent, and answers in the same shape whether it
// applied the batch now or finds that it did so before. A limiter has at most
// one batch per partition without an answer and sends that one, unchanged,
// until it is answered. These two rules together are why no unit is lost or
// counted twice when a connection breaks.
package store

import (
	"context"
	"time"
)

// MaxUnits is the largest delta a batch carries and the largest total that is
// valid: 2^53 − 1, the largest integer that Lua counts exactly.
const MaxUnits = 1<<53 - 1

// Invalid stands for a total that is not a counter: a key of another type, a
// value that is not all digits, or one above [MaxUnits].
const Invalid int64 = -1

// A Store holds the counters of one partition.
//
// A limiter calls Apply from one goroutine at a time. A store that several
// limiters share must be safe for concurrent use.
type Store interface {
	// Apply applies the batch and fills in the reply, whose slices it may reuse.
	// Both belong to the caller: a store keeps neither them nor their strings
	// after it has returned.
	//
	// A nil error means that the reply is complete and carries the batch's
	// number; only then is the batch acknowledged. An error should be, or wrap,
	// an [*Error], which says what is known about this attempt; any other error
	// is taken as [Unknown].
	//
	// Apply returns soon after ctx ends. The ctx of a limiter's own ticks has no
	// deadline, it ends with the limiter: a store bounds its attempts by timeouts of
	// its own.
	Apply(ctx context.Context, batch *Batch, reply *Reply) error
}

// A Batch is what one limiter has to say to one partition, and what it asks.
// All of it is applied, atomically, or none of it, single poisoned or refused
// counters apart.
type Batch struct {
	// Sequence is the key that holds the number of the last batch applied under
	// this identity, and the failures of that batch. No other limiter uses it.
	Sequence string
	// Number starts at 1 and grows by 1 with each new batch under a sequence.
	Number uint64
	// Retry says that an earlier attempt at this batch may have been applied.
	Retry bool
	// SequenceTTL is how long the sequence key lives after this batch.
	SequenceTTL time.Duration

	// WindowKey holds the window that the fleet works with; the first batch sets
	// it, equal ones renew it to SequenceTTL, a different one leaves it alone.
	WindowKey string
	// Window is this limiter's window, in whole milliseconds.
	Window time.Duration

	// TTL is how long a counter lives that this batch creates, and Spread how much
	// longer at most, so that those created together do not expire together: see
	// [Batch.Lifetime]. TTL is whole milliseconds, at least 1 s.
	TTL, Spread time.Duration

	// Writes are the counters to add to. No key occurs twice in a batch, in
	// Writes and Reads together.
	Writes []Write
	// Reads are the counters to read without adding to them.
	Reads []string
}

// A Write adds to one counter.
type Write struct {
	Key   string
	Delta uint64 // 1 … MaxUnits
}

// spreads is into how many steps Spread is divided.
const spreads = 64

// Lifetime is how long the counter lives that write i creates, counted from 0: TTL
// and a part of Spread that differs from write to write and from batch to batch,
// ((Number + i) mod 64) / 64 of it, in whole milliseconds.
func (b *Batch) Lifetime(i int) time.Duration {
	return b.TTL + b.SpreadStep()*time.Duration((b.Number+uint64(i))%spreads)
}

// SpreadStep is the 64th of Spread by which neighbours in a batch differ, in whole
// milliseconds.
func (b *Batch) SpreadStep() time.Duration {
	return (b.Spread / spreads).Truncate(time.Millisecond)
}

// A Reply answers a batch, its slices in the order of the batch's.
type Reply struct {
	// Number echoes the batch's.
	Number  uint64
	Outcome Outcome
	// Time is the store's clock, as Unix time in microseconds.
	Time int64
	// Window is what the window key holds after the batch, in milliseconds;
	// [Invalid] if it cannot be read or is not a number.
	Window int64
	Writes []WriteResult
	// Reads holds a total for each read: 0 for a counter that does not exist,
	// [Invalid] for one that is poisoned or may not be read.
	Reads []int64
}

// A WriteResult says what became of one write.
type WriteResult struct {
	Status Status
	// Total is the counter after the write, or as it is now if nothing was
	// written now: 0 if it does not exist, [Invalid] if it is no valid counter.
	Total int64
}

// An Outcome says whether a batch's writes were applied.
type Outcome uint8

const (
	// Applied: the number was new; the writes took effect in this attempt.
	Applied Outcome = iota + 1
	// Duplicate: the number had been applied before. Nothing was written now;
	// the statuses are those of the attempt that was applied if it was this very
	// number, the totals are read now.
	Duplicate
	// Orphan: Retry was set, the number is above 1, and no sequence key exists
	// (it was evicted, or the data lost). Nothing was written; whether an earlier
	// attempt was applied cannot be known. Every status is [Skipped].
	Orphan
	// BadSequence: the sequence key holds something else than a number. Nothing
	// was written. Every status is [Skipped].
	BadSequence
)

// A Status is what became of one counter of an applied batch.
type Status uint8

const (
	// Written: the delta was added.
	Written Status = iota
	// Poisoned: the counter's type or value makes it unusable, or the addition
	// took it out of 0 … MaxUnits. The delta is lost.
	Poisoned
	// Refused: the store refused this counter alone (for want of a permission,
	// for example). The delta was not added.
	Refused
	// Unexpiring: the delta was added to a new counter, but its TTL could not be
	// set.
	Unexpiring
	// Skipped: the batch was not applied.
	Skipped
)

// A Fate is what an error tells about the attempt it ended.
type Fate uint8

const (
	// Unknown: the attempt may or may not have been applied.
	Unknown Fate = iota
	// NotSent: the attempt never left this process.
	NotSent
	// Denied: the store received the attempt and refused it as a whole; it had
	// no effect.
	Denied
)

// An Error is a failed attempt at a batch.
type Error struct {
	Fate Fate
	// Step is where it failed: one of the Step constants.
	Step string
	// Cause is a metric label: one of the Cause constants.
	Cause string
	// Err is what the transport or the server said, with secrets masked; may be nil.
	Err error
}

// Error returns the step, the cause and what was said.
func (e *Error) Error() string {
	text := "store: " + e.Step + ": " + e.Cause
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// The steps of an attempt.
const (
	StepConnect = "connect" // a connection could not be had
	StepSend    = "send"    // the request was being written
	StepReply   = "reply"   // the reply was awaited, or was an error
	StepDecode  = "decode"  // the reply was not of the right shape
)

// The causes of failed attempts: a closed list, for they become metric labels.
const (
	CauseTimeout       = "timeout"
	CauseClosed        = "closed"         // EOF or a reset: the peer closed the connection
	CauseUnreachable   = "unreachable"    // nothing listens, no route, no such host
	CausePoolExhausted = "pool_exhausted" // the pool has no connection to give
	CauseTLS           = "tls"
	CauseAuth          = "auth" // NOAUTH, WRONGPASS
	CausePermission    = "permission"
	CauseReadOnly      = "read_only"
	CauseLoading       = "loading"
	CauseMasterDown    = "master_down"
	CauseOutOfMemory   = "out_of_memory"
	CauseNoReplicas    = "no_replicas"
	CauseMisconf       = "misconf" // persistence fails, so writes are refused
	CauseBusy          = "busy"    // another script holds the server
	CauseMaxClients    = "max_clients"
	CauseCluster       = "cluster" // CLUSTERDOWN, CROSSSLOT, MOVED, ASK, TRYAGAIN
	CauseProtocol      = "protocol"
	CauseMalformed     = "malformed" // a reply of the wrong shape, length or number
	CauseCanceled      = "canceled"  // the caller's context ended
	CauseOther         = "other"
)
