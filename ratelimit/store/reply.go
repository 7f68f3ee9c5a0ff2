package store

// This file is what a store answers.

// A Reply answers a batch, its slices in the order of the batch's.
type Reply struct {
	// Number echoes the batch's.
	Number  uint64
	Outcome Outcome
	// Forgotten says that the store no longer held the batch that Acked names when
	// this one came: what it acknowledged before may be gone. A repetition is told
	// the same again.
	Forgotten bool
	// Time is the store's clock, as Unix time in microseconds.
	Time int64
	// Window is what the window key holds after the batch, in milliseconds;
	// [Invalid] if it does not exist, cannot be read or is not a number.
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
	// Taken is how much a negative delta took: less than asked if the counter held
	// less, 0 if the write failed. A repetition is told the same again.
	Taken uint64
	// Granted answers a Condition's amounts, in order; without one it is empty. It may
	// share memory with other results of the same reply. A repetition is told the same
	// again.
	Granted []bool
}

// An Outcome says whether a batch's writes were applied.
type Outcome uint8

const (
	// Applied: the number was new; the writes took effect in this attempt.
	Applied Outcome = iota + 1
	// Duplicate: this very batch, by number and nonce, had been applied before.
	// Nothing was written now; what became of each write is told as it was then, the
	// totals are read now.
	Duplicate
	// Stranger: a batch of another nonce or of a higher number had been applied. So
	// somebody else uses the sequence key, or this batch is one long given up.
	// Nothing was written. Every status is [Skipped].
	Stranger
	// Orphan: Retry was set, the number is above 1, and no sequence key exists
	// (it was evicted, or the data lost). Nothing was written; whether an earlier
	// attempt was applied cannot be known. Every status is [Skipped].
	Orphan
	// BadSequence: the sequence key holds something else than a sequence. Nothing
	// was written. Every status is [Skipped].
	BadSequence
	// Looked: the batch was a look.
	Looked
)

// A Status is what became of one counter of an applied batch.
type Status uint8

const (
	// Written: the counter was changed as asked, or as far as it could be taken from.
	Written Status = iota
	// Poisoned: the counter is no non-negative number, or no number that the store can
	// add to. The delta is lost.
	Poisoned
	// Refused: the store refused this counter alone (for want of a permission,
	// for example). It was not changed.
	Refused
	// Unexpiring: the counter is new and was written, but its TTL could not be set.
	Unexpiring
	// Saturated: the counter is so large that the store cannot add to it. It was not
	// changed, and its total is MaxUnits.
	Saturated
	// Skipped: the batch was not applied.
	Skipped
)
