// This file reads and writes what a sequence key holds: the number of the last
// batch applied and, if some of its writes failed, which and how, so that a
// duplicate is told the same. The form is the script's: "57", or "57 3:1 9:2"
// with indices from 1.

package memstore

import (
	"strconv"
	"strings"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A failure is one write of an applied batch that was not simply written.
type failure struct {
	index  int // from 0
	status store.Status
}

// formatSequence is the value for a number and the failures of its batch.
func formatSequence(number uint64, failures []failure) value {
	if len(failures) == 0 {
		return integerValue(int64(number))
	}
	text := strconv.AppendUint(nil, number, 10)
	for _, f := range failures {
		text = append(text, ' ')
		text = strconv.AppendInt(text, int64(f.index)+1, 10)
		text = append(text, ':', '0'+byte(f.status))
	}
	return stringValue(string(text))
}

// parseSequence reads an entry; false means that it is no sequence.
func parseSequence(e *entry) (number uint64, failures []failure, ok bool) {
	if e.kind == foreign {
		return 0, nil, false
	}
	head, rest, listed := strings.Cut(e.String(), " ")
	n := parseTotal(head)
	if n == store.Invalid {
		return 0, nil, false
	}
	if !listed {
		return uint64(n), nil, true
	}
	for field := range strings.SplitSeq(rest, " ") {
		index, status, _ := strings.Cut(field, ":")
		i := parseTotal(index)
		if i == store.Invalid || len(status) != 1 || status[0] < '1' || status[0] > '3' {
			return 0, nil, false
		}
		failures = append(failures, failure{index: int(i) - 1, status: store.Status(status[0] - '0')})
	}
	return uint64(n), failures, true
}
