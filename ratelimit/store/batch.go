package store

// This file is what a limiter says to a store.

import "time"

// A Batch is what one limiter has to say to one partition, and what it asks.
// All of it is applied, atomically, or none of it, single poisoned or refused
// counters apart.
type Batch struct {
	// Sequence is the key that holds the number and the nonce of the last batch
	// applied under this identity, and what a repetition of it must be told again.
	// No other limiter uses it.
	Sequence string
	// Number starts at 1 and grows with each new batch under a sequence. A batch of
	// number 0 is a look: it has no writes, leaves no trace, and is answered with
	// [Looked] and its reads.
	Number uint64
	// Nonce is drawn at random for each batch and is the same in all its attempts.
	// It tells a batch sent twice from another limiter's batch under the same number.
	Nonce uint64
	// Acked is the last number acknowledged under this sequence; 0 is none. A store
	// that holds less has forgotten it.
	Acked uint64
	// Retry says that an earlier attempt at this batch may have been applied.
	Retry bool
	// SequenceTTL is how long the sequence key lives after this batch.
	SequenceTTL time.Duration

	// Patience is how long the store may wait for the reply to this attempt, where
	// that is longer than it would wait by itself; 0 leaves it to the store.
	Patience time.Duration

	// WindowKey holds the window that the fleet works with; the first batch sets
	// it, equal ones renew it to SequenceTTL, a different one leaves it alone.
	WindowKey string
	// Window is this limiter's window, in whole milliseconds.
	Window time.Duration

	// TTL is how long a counter lives that this batch creates, and Spread how much
	// longer at most, so that those created together do not expire together: see
	// [Batch.Lifetime]. TTL is whole milliseconds, at least 1 s.
	TTL, Spread time.Duration

	// Writes are the counters to change, in this order. No key occurs twice in a
	// batch, in Writes and Reads together.
	Writes []Write
	// Reads are the counters to read without changing them, after all writes.
	Reads []string
}

// A Write changes one counter.
type Write struct {
	Key string
	// Delta is added: −[MaxUnits] … [MaxUnits]. A negative one takes no more than the
	// counter holds, and never creates a key. It is 0 only with a Condition.
	Delta int64
	// Condition, if not nil, asks for units that are added only if they fit.
	Condition *Condition
}

// A Condition asks for several amounts, each granted or not.
//
// After the delta each amount is added, in order, if
//
//	⌈previous × Weight / 2^20⌉ + counter + amount ≤ Limit
//
// where counter includes what was granted before it. The arithmetic is exact. Nothing
// is granted where either counter is no valid total, or where the write fails.
type Condition struct {
	// Amounts are what is asked for, each 1 … MaxUnits; at most [MaxAmounts] in all
	// conditions of a batch together.
	Amounts []uint64
	// Limit is the largest sum that is admitted; above MaxUnits it is MaxUnits.
	Limit uint64
	// Previous is the key of the previous counter; "" stands for a count of 0. It may
	// be that of another write, whose effect it shows if that comes first, or of a read.
	Previous string
	// Weight is how much of the previous counter counts, in 2^20ths, rounded up by the
	// limiter: 0 … [FullWeight].
	Weight uint32
}

const (
	// FullWeight is the weight of a counter that counts whole.
	FullWeight = 1 << 20
	// MaxAmounts is how many amounts a batch may ask for, in all its conditions.
	MaxAmounts = 500
)

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
