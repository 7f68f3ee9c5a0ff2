package scriptcall

// This file reads the notes at the end of a reply: what became of the writes that were
// not simply done, and whether the store forgot what it acknowledged.

import "github.com/hanzoai/limiters/ratelimit/store"

const (
	noteLength = 3  // integers of a note: index of a write from 1, code, value
	wordBits   = 32 // amounts that a note of what was not granted answers
)

// The codes of notes, as the script's header lists them.
const (
	notePoisoned = iota + 1
	noteRefused
	noteUnexpiring
	noteSaturated
	noteTaken
	noteForgotten
	noteUngranted
)

// asAsked completes the result of a special write that took and granted all it was asked.
func asAsked(w *store.Write, r *store.WriteResult) {
	if w.Delta < 0 && r.Status == store.Written {
		r.Taken = uint64(-w.Delta)
	}
	if w.Condition != nil {
		r.Granted = make([]bool, len(w.Condition.Amounts))
		for i := range r.Granted {
			r.Granted[i] = r.Status == store.Written
		}
	}
}

func applied(o store.Outcome) bool { return o == store.Applied || o == store.Duplicate }

// decodeNotes fills in what the notes from element at on say. A note that does not suit
// its write is passed over: anybody may have written the sequence key that it comes from.
func decodeNotes(values []any, at int, batch *store.Batch, reply *store.Reply) error {
	reply.Forgotten = false
	if at == len(values) {
		return nil
	}
	for ; at < len(values); at += noteLength {
		index, err := integer(values, at, 0, store.MaxUnits)
		if err != nil {
			return err
		}
		code, err := integer(values, at+1, notePoisoned, noteUngranted)
		if err != nil {
			return err
		}
		value, err := integer(values, at+2, 0, store.MaxUnits)
		if err != nil {
			return err
		}
		switch {
		case code == noteForgotten && index == 0:
			reply.Forgotten = true
		case index > 0 && index <= int64(len(batch.Writes)) && applied(reply.Outcome):
			noted(code, value, &batch.Writes[index-1], &reply.Writes[index-1])
		}
	}
	for i := range reply.Writes {
		if r := &reply.Writes[i]; r.Status != store.Written && r.Status != store.Unexpiring {
			r.Taken = 0
			clear(r.Granted)
		}
	}
	return nil
}

// noted makes one note part of a write's result.
func noted(code, value int64, w *store.Write, r *store.WriteResult) {
	switch code {
	case notePoisoned:
		r.Status = store.Poisoned
	case noteRefused:
		r.Status = store.Refused
	case noteUnexpiring:
		r.Status = store.Unexpiring
	case noteSaturated:
		r.Status = store.Saturated
	case noteTaken:
		if w.Delta < 0 && value <= -w.Delta {
			r.Taken = uint64(value)
		}
	case noteUngranted:
		first := value >> wordBits * wordBits
		for bit := range int64(wordBits) {
			if value>>bit&1 == 1 && first+bit < int64(len(r.Granted)) {
				r.Granted[first+bit] = false
			}
		}
	}
}
