// This file is what a test looks at and tampers with; no limiter calls it.

package memstore

import (
	"slices"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// Get returns the key's total as a batch would read it ([store.Invalid] if it is
// no valid counter) and whether the key exists.
func (s *Store) Get(key string) (total int64, ok bool) {
	e, unlock := s.lookUp(key)
	defer unlock()
	if e == nil {
		return 0, false
	}
	return e.total(), true
}

// Text returns the key's value as GET answers it; false if the key does not exist
// or holds another type than a string.
func (s *Store) Text(key string) (text string, ok bool) {
	e, unlock := s.lookUp(key)
	defer unlock()
	if e == nil || e.kind == foreign {
		return "", false
	}
	return e.String(), true
}

// TTL returns how long the key will live, in whole milliseconds; a negative
// duration if it has no expiry. It returns false if the key does not exist.
func (s *Store) TTL(key string) (ttl time.Duration, ok bool) {
	e, unlock := s.lookUp(key)
	defer unlock()
	switch {
	case e == nil:
		return 0, false
	case e.expires == forever:
		return -1, true
	}
	return time.Duration(e.expires-s.table.now) * time.Millisecond, true
}

// Keys returns all keys that exist, sorted.
func (s *Store) Keys() []string {
	_, unlock := s.lookUp("")
	defer unlock()
	keys := make([]string, 0, len(s.table.list))
	for _, e := range s.table.list {
		if s.table.now <= e.expires {
			keys = append(keys, e.key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Held returns how many keys are in memory, those included that have expired and
// are not yet swept.
func (s *Store) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.table.list)
}

// Set makes the key hold text, without an expiry: a poisoned counter unless it is
// a number.
func (s *Store) Set(key, text string) {
	s.replace(key, stringValue(text))
}

// SetForeign makes the key hold another type than a string.
func (s *Store) SetForeign(key string) {
	s.replace(key, value{kind: foreign})
}

// Delete removes the key.
func (s *Store) Delete(key string) {
	e, unlock := s.lookUp(key)
	defer unlock()
	if e != nil {
		s.table.remove(e)
	}
}

// FlushAll removes every key.
func (s *Store) FlushAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table = table{entries: map[string]*entry{}}
}

// Fail makes writes to the key fail from now on, as an access list would:
// [store.Refused] adds nothing, [store.Unexpiring] denies a new counter its TTL.
// [store.Written] ends it; any other status is the same as that.
func (s *Store) Fail(key string, status store.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status != store.Refused && status != store.Unexpiring {
		delete(s.failures, key)
		return
	}
	if s.failures == nil {
		s.failures = map[string]store.Status{}
	}
	s.failures[key] = status
}

// replace sets the key's value and takes its expiry away.
func (s *Store) replace(key string, v value) {
	e, unlock := s.lookUp(key)
	defer unlock()
	if e == nil {
		s.table.insert(key, v, forever)
		return
	}
	e.value, e.expires = v, forever
}

// lookUp locks the store, brings its table to the present and finds key.
func (s *Store) lookUp(key string) (e *entry, unlock func()) {
	now := s.now()
	s.mu.Lock()
	s.table.now = floorDiv(now, int64(time.Millisecond))
	return s.table.find(key), s.mu.Unlock
}
