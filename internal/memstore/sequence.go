// This file reads and writes what a sequence key holds: the number and the nonce of
// the last batch applied, and notes of what a repetition of it must be told again. The
// form is the script's: "57 8213", or "57 8213 3:1:0 9:5:12".

package memstore

import (
	"strconv"
	"strings"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A code says what a note is about. Those below noteTaken are statuses.
type code uint8

const (
	noteTaken     code = iota + 5 // a negative delta took only value
	noteForgotten                 // the store forgot what it acknowledged; index 0
	noteUngranted                 // value is 2^32 × word + the bits of those of its 32 amounts that were not granted
)

// A note is one thing that a repetition is told again.
type note struct {
	index int64 // of the write, from 1; 0 for the batch
	code  code
	value int64
}

// wordBits is how many amounts a noteUngranted answers.
const wordBits = 32

// statusCodes are the codes of statuses, by status.
var statusCodes = map[store.Status]code{store.Poisoned: 1, store.Refused: 2, store.Unexpiring: 3, store.Saturated: 4}

// statuses are the statuses by code.
var statuses = [...]store.Status{1: store.Poisoned, 2: store.Refused, 3: store.Unexpiring, 4: store.Saturated}

// formatSequence is the value for a batch and the notes about it.
func formatSequence(batch *store.Batch, notes []note) value {
	text := strconv.AppendUint(nil, batch.Number, 10)
	text = append(text, ' ')
	text = strconv.AppendUint(text, batch.Nonce, 10)
	for _, n := range notes {
		text = append(text, ' ')
		text = strconv.AppendInt(text, n.index, 10)
		text = append(text, ':', '0'+byte(n.code), ':')
		text = strconv.AppendInt(text, n.value, 10)
	}
	return stringValue(string(text))
}

// A sequence is what a sequence key holds.
type sequence struct {
	number uint64
	nonce  string // all digits
	notes  []note
}

// parseSequence reads an entry; false means that it is no sequence.
func parseSequence(e *entry) (s sequence, ok bool) {
	if e.kind == foreign {
		return s, false
	}
	fields := strings.Split(e.String(), " ")
	if len(fields) < 2 || parseTotal(fields[0]) < 0 || parseTotal(fields[1]) < 0 {
		return s, false
	}
	s.number, s.nonce = uint64(parseTotal(fields[0])), fields[1]
	for _, field := range fields[2:] {
		parts := strings.Split(field, ":")
		if len(parts) != 3 || len(parts[1]) != 1 || parts[1][0] < '1' || parts[1][0] > '7' {
			return s, false
		}
		index, value := parseTotal(parts[0]), parseTotal(parts[2])
		if index < 0 || value < 0 {
			return s, false
		}
		s.notes = append(s.notes, note{index, code(parts[1][0] - '0'), value})
	}
	return s, true
}

// tell fills in the reply, whose results say that all was written as asked, with what
// the notes say of them. A note that does not suit its write is passed over: anybody
// may have written the key.
func tell(notes []note, batch *store.Batch, reply *store.Reply) {
	for _, n := range notes {
		if n.code == noteForgotten && n.index == 0 {
			reply.Forgotten = true
		}
		if n.index < 1 || n.index > int64(len(batch.Writes)) {
			continue
		}
		w, r := &batch.Writes[n.index-1], &reply.Writes[n.index-1]
		switch n.code {
		case noteTaken:
			if w.Delta < 0 && n.value <= -w.Delta {
				r.Taken = uint64(n.value)
			}
		case noteUngranted:
			for bit := range int64(wordBits) {
				if at := n.value>>wordBits*wordBits + bit; n.value>>bit&1 == 1 && at < int64(len(r.Granted)) {
					r.Granted[at] = false
				}
			}
		case noteForgotten:
		default:
			r.Status = statuses[n.code]
		}
	}
	for i := range reply.Writes {
		if r := &reply.Writes[i]; r.Status != store.Written && r.Status != store.Unexpiring {
			r.Taken = 0
			clear(r.Granted)
		}
	}
}
