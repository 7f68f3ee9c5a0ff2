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
// A batch is numbered, and carries a nonce drawn for it alone. A store applies a
// number at most once per sequence key, however often the batch is sent, and answers
// in the same shape whether it applied the batch now or finds that it did so before.
// A limiter has at most one batch per partition without an answer and sends that one,
// with the same number and nonce, until it is answered. These two rules together are
// why no unit is lost or counted twice when a connection breaks.
//
// # What a store may do
//
// A store, and all that stands between it and the counters, may send a batch more
// than once within one Apply: a client library that retries, a proxy that repeats.
// The second one is answered [Duplicate], which acknowledges as [Applied] does. A
// store must not change a batch, mix two, send a batch after Apply has returned with
// [NotSent] or [Denied], or answer for the counters.
//
// # What a limiter learns
//
// A reply says besides whether the store forgot batches that it had acknowledged
// ([Reply.Forgotten]), and how much less than asked was taken or granted.
package store

import "context"

// MaxUnits is the largest delta a batch carries and the largest total: 2^53 − 1, the
// largest integer that Lua counts exactly. A counter that holds more is saturated:
// its total is MaxUnits.
const MaxUnits = 1<<53 - 1

// Invalid stands for a total that is not a counter: a key of another type, or a
// value that is not all digits.
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
