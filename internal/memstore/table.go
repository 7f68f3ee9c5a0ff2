// This file is the keyspace: values that are counters or are not, their expiry,
// and the sweep that keeps what nobody asks for any more from piling up.

package memstore

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// forever is the expiry of a key without one.
const forever = math.MaxInt64

// A kind is what a key holds.
type kind uint8

const (
	integer kind = iota // what Redis would add to: a canonical int64
	text                // a string that is none
	foreign             // another type than a string
)

// A value is what a key holds, without its expiry.
type value struct {
	kind kind
	n    int64  // for integer
	text string // for text
}

// An entry is one key. It is in its table's map and, at slot, in its list.
type entry struct {
	value
	key     string
	slot    int
	expires int64 // the last millisecond at which it exists
}

// A table is a keyspace at one moment, now. It is not safe for concurrent use.
type table struct {
	now     int64 // in milliseconds since the Unix epoch
	entries map[string]*entry
	list    []*entry // all entries, in an order that depends on the calls alone
	cursor  int      // where the sweep goes on
}

// find returns the key's entry, or nil; an expired one it removes.
func (t *table) find(key string) *entry {
	e := t.entries[key]
	if e != nil && t.now > e.expires {
		t.remove(e)
		return nil
	}
	return e
}

// total is the key's value as a total: 0 if there is none.
func (t *table) total(key string) int64 {
	if e := t.find(key); e != nil {
		return e.total()
	}
	return 0
}

// add adds as INCRBY does: a missing key counts as 0, and false means that the
// key is not an integer or would overflow, and is unchanged.
func (t *table) add(key string, delta int64) (int64, bool) {
	e := t.find(key)
	if e == nil {
		t.insert(key, integerValue(delta), forever)
		return delta, true
	}
	if e.kind != integer || delta > 0 && e.n > math.MaxInt64-delta {
		return 0, false
	}
	e.n += delta
	return e.n, true
}

// set replaces the key's value and expiry.
func (t *table) set(key string, v value, ttl time.Duration) {
	e := t.find(key)
	if e == nil {
		e = t.insert(key, v, forever)
	}
	e.value = v
	e.expireAfter(t.now, ttl)
}

// insert adds a key that is not there. The key is copied: a batch's strings are
// its caller's.
func (t *table) insert(key string, v value, expires int64) *entry {
	e := &entry{value: v, key: strings.Clone(key), slot: len(t.list), expires: expires}
	t.entries[e.key] = e
	t.list = append(t.list, e)
	return e
}

// remove takes an entry out; the last of the list takes its slot.
func (t *table) remove(e *entry) {
	delete(t.entries, e.key)
	last := len(t.list) - 1
	moved := t.list[last]
	t.list[e.slot] = moved
	moved.slot = e.slot
	t.list[last] = nil
	t.list = t.list[:last]
}

// sweep looks at n entries and removes the expired ones. As it looks at more
// than a batch can add, what is expired stays a bounded part of the whole.
func (t *table) sweep(n int) {
	for ; n > 0 && len(t.list) > 0; n-- {
		if t.cursor >= len(t.list) {
			t.cursor = 0
		}
		e := t.list[t.cursor]
		if t.now > e.expires {
			t.remove(e)
		} else {
			t.cursor++
		}
	}
}

// expireAfter lets the entry live for ttl from now on, in whole milliseconds.
func (e *entry) expireAfter(now int64, ttl time.Duration) {
	e.expires = now + ttl.Milliseconds()
}

// total is the value as a total: valid iff it is all digits, and store.MaxUnits at most.
func (v *value) total() int64 {
	switch v.kind {
	case integer:
		if v.n >= 0 {
			return min(v.n, store.MaxUnits)
		}
	case text:
		return parseTotal(v.text)
	}
	return store.Invalid
}

// parseTotal reads a total as the script does, leading zeros included.
func parseTotal(s string) int64 {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return store.Invalid
	}
	digits := strings.TrimLeft(s, "0")
	if digits == "" {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return store.MaxUnits // it is too long
	}
	return min(n, store.MaxUnits)
}

// integerValue is a counter.
func integerValue(n int64) value { return value{kind: integer, n: n} }

// stringValue is what Redis would make of a string: a counter if it is a
// canonical int64, else text.
func stringValue(s string) value {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && strconv.FormatInt(n, 10) == s {
		return integerValue(n)
	}
	return value{kind: text, text: strings.Clone(s)}
}

// String is the value as GET answers it; empty for another type than a string.
func (v *value) String() string {
	if v.kind == integer {
		return strconv.FormatInt(v.n, 10)
	}
	return v.text
}
