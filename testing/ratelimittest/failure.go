package ratelimittest

// This file is what can go wrong between a limiter and its store.

import (
	"errors"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A Failure is how a [Store] fails. What each leaves the limiter to know differs,
// and so does what it does next; see store.Fate.
type Failure uint8

const (
	// None: no failure.
	None Failure = iota
	// Unreachable: no connection can be made. The batch never leaves the node.
	Unreachable
	// Refused: the server answers that it takes no writes (READONLY). The batch
	// has no effect.
	Refused
	// RequestLost: the request never arrives, and the limiter waits for a reply
	// until it times out. It cannot know that the batch had no effect.
	RequestLost
	// ReplyLost: the batch is applied, but its reply never arrives.
	ReplyLost
	// Reset: the batch is applied, and the connection closed instead of a reply.
	// The limiter tries once more at once.
	Reset
)

// String returns the failure's name.
func (f Failure) String() string {
	return [...]string{"none", "unreachable", "refused", "request lost", "reply lost", "reset"}[f]
}

// applied reports whether the batch takes effect all the same.
func (f Failure) applied() bool { return f == None || f == ReplyLost || f == Reset }

// err is what the limiter gets to see; nil for None.
func (f Failure) err() error {
	switch f {
	case None:
		return nil
	case Unreachable:
		return &store.Error{Fate: store.NotSent, Step: store.StepConnect, Cause: store.CauseUnreachable, Err: errUnreachable}
	case Refused:
		return &store.Error{Fate: store.Denied, Step: store.StepReply, Cause: store.CauseReadOnly, Err: errReadOnly}
	case Reset:
		return &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseClosed, Err: errReset}
	default:
		return &store.Error{Fate: store.Unknown, Step: store.StepReply, Cause: store.CauseTimeout, Err: errTimeout}
	}
}

var (
	errUnreachable = errors.New("ratelimittest: connection refused")
	errReadOnly    = errors.New("ratelimittest: READONLY the store takes no writes")
	errReset       = errors.New("ratelimittest: connection reset")
	errTimeout     = errors.New("ratelimittest: no reply in time")
)
