// This file reads the script's answer, and takes no answer for granted: what is
// not exactly the shape, length and range it must be acknowledges nothing.

package scriptcall

import (
	"fmt"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// headLength is the count of integers before the first write's.
const headLength = 5

// Decode fills in the reply to batch from what a client returned: an array is a
// []any, an integer an int64. It reuses the reply's slices. After an error the
// reply is undefined; a batch is acknowledged by a nil error only.
func Decode(raw any, batch *store.Batch, reply *store.Reply) error {
	values, ok := raw.([]any)
	if !ok {
		return fmt.Errorf("scriptcall: the reply is a %T, not an array", raw)
	}
	if want := headLength + 2*len(batch.Writes) + len(batch.Reads); len(values) != want {
		return fmt.Errorf("scriptcall: the reply has %d elements, not %d", len(values), want)
	}
	if err := decodeHead(values, batch, reply); err != nil {
		return err
	}
	first, last := statuses(reply.Outcome)
	reply.Writes = resize(reply.Writes, len(batch.Writes))
	for i := range reply.Writes {
		at := headLength + 2*i
		status, err := integer(values, at, first, last)
		if err != nil {
			return err
		}
		total, err := integer(values, at+1, store.Invalid, store.MaxUnits)
		if err != nil {
			return err
		}
		reply.Writes[i] = store.WriteResult{Status: store.Status(status), Total: total}
	}
	reply.Reads = resize(reply.Reads, len(batch.Reads))
	for i := range reply.Reads {
		total, err := integer(values, headLength+2*len(batch.Writes)+i, store.Invalid, store.MaxUnits)
		if err != nil {
			return err
		}
		reply.Reads[i] = total
	}
	return nil
}

// decodeHead reads what precedes the counters.
func decodeHead(values []any, batch *store.Batch, reply *store.Reply) error {
	number := int64(batch.Number)
	if _, err := integer(values, 0, number, number); err != nil {
		return err
	}
	outcome, err := integer(values, 1, int64(store.Applied), int64(store.BadSequence))
	if err != nil {
		return err
	}
	seconds, err := integer(values, 2, 0, store.MaxUnits/1_000_000)
	if err != nil {
		return err
	}
	micros, err := integer(values, 3, 0, 999_999)
	if err != nil {
		return err
	}
	window, err := integer(values, 4, store.Invalid, store.MaxUnits)
	if err != nil {
		return err
	}
	reply.Number = batch.Number
	reply.Outcome = store.Outcome(outcome)
	reply.Time = seconds*1_000_000 + micros
	reply.Window = window
	return nil
}

// statuses is the range of statuses that an outcome allows.
func statuses(outcome store.Outcome) (first, last int64) {
	if outcome == store.Applied || outcome == store.Duplicate {
		return int64(store.Written), int64(store.Unexpiring)
	}
	return int64(store.Skipped), int64(store.Skipped)
}

// integer returns the element at i if it is an integer within least … most.
func integer(values []any, i int, least, most int64) (int64, error) {
	n, ok := values[i].(int64)
	if !ok {
		return 0, fmt.Errorf("scriptcall: element %d of the reply is a %T, not an integer", i, values[i])
	}
	if n < least || n > most {
		return 0, fmt.Errorf("scriptcall: element %d of the reply is %d, not within %d … %d", i, n, least, most)
	}
	return n, nil
}

// resize returns a slice of n elements, in s's memory if it is large enough.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
