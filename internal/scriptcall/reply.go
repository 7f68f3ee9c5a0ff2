// This file reads the script's answer, and takes no answer for granted: what is
// not exactly the shape, length and range it must be acknowledges nothing.

package scriptcall

import (
	"fmt"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// headLength is the count of integers before the totals.
const headLength = 5

// MaxElements is how many integers a reply to the batch has at most: whatever announces
// more is none.
func MaxElements(batch *store.Batch) int {
	notes := 1 + 2*len(batch.Writes) // the batch's, then a status and a taking for each
	for i := range batch.Writes {
		if c := batch.Writes[i].Condition; c != nil {
			notes += (len(c.Amounts) + wordBits - 1) / wordBits
		}
	}
	return headLength + len(batch.Writes) + len(batch.Reads) + noteLength*notes
}

// Decode fills in the reply to batch from what a client returned: an array is a
// []any, an integer an int64. It reuses the reply's slices. After an error the
// reply is undefined; a batch is acknowledged by a nil error only.
func Decode(raw any, batch *store.Batch, reply *store.Reply) error {
	values, ok := raw.([]any)
	if !ok {
		return fmt.Errorf("scriptcall: the reply is a %T, not an array", raw)
	}
	writes, reads := len(batch.Writes), len(batch.Reads)
	notes := len(values) - headLength - writes - reads
	if notes < 0 || notes%noteLength != 0 || len(values) > MaxElements(batch) {
		return fmt.Errorf("scriptcall: the reply has %d elements, which does not suit %d writes and %d reads", len(values), writes, reads)
	}
	if err := decodeHead(values, batch, reply); err != nil {
		return err
	}
	reply.Writes = resize(reply.Writes, writes)
	status := store.Skipped
	if applied(reply.Outcome) {
		status = store.Written
	}
	for i := range reply.Writes {
		total, err := integer(values, headLength+i, store.Invalid, store.MaxUnits)
		if err != nil {
			return err
		}
		reply.Writes[i] = store.WriteResult{Status: status, Total: total}
		if w := &batch.Writes[i]; isSpecial(w) {
			asAsked(w, &reply.Writes[i])
		}
	}
	reply.Reads = resize(reply.Reads, reads)
	for i := range reply.Reads {
		total, err := integer(values, headLength+writes+i, store.Invalid, store.MaxUnits)
		if err != nil {
			return err
		}
		reply.Reads[i] = total
	}
	return decodeNotes(values, len(values)-notes, batch, reply)
}

// decodeHead reads what precedes the counters.
func decodeHead(values []any, batch *store.Batch, reply *store.Reply) error {
	number := int64(batch.Number)
	if _, err := integer(values, 0, number, number); err != nil {
		return err
	}
	outcome, err := integer(values, 1, int64(store.Applied), int64(store.Looked))
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
	if (batch.Number == 0) != (reply.Outcome == store.Looked) {
		return fmt.Errorf("scriptcall: outcome %d to a batch of number %d", outcome, batch.Number)
	}
	reply.Time = seconds*1_000_000 + micros
	reply.Window = window
	return nil
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
