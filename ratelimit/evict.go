package ratelimit

// This file chooses what leaves a full table: first what was looked up only when
// it was new, then what was not looked up lately, and a limited entity only when
// every other is limited too. A flood of keys seen once passes through the tenth
// of the table that is for new entries (S3-FIFO, with an entry set aside taking
// the part of its ghost queue).

// An entryList is linked by prev and next. The zero value is empty.
type entryList struct {
	front, back *entry
	len         int
}

func (l *entryList) pushBack(e *entry) {
	e.prev, e.next = l.back, nil
	if l.back == nil {
		l.front = e
	} else {
		l.back.next = e
	}
	l.back = e
	l.len++
}

func (l *entryList) remove(e *entry) {
	if e.prev == nil {
		l.front = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.back = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// makeRoomLocked evicts an unlimited entry of this shard, other than keep, if the
// table holds more than it may. It reports whether the table is within its bound.
func (s *shard) makeRoomLocked(keep *entry, r *reading) bool {
	if s.table.live.Load() <= s.table.limit {
		return true
	}
	e := s.victimLocked(keep, r)
	if e == nil {
		return false
	}
	s.evictLocked(e, evictSize)
	return s.table.live.Load() <= s.table.limit
}

// victimLocked returns the entry to evict: not limited and not keep; nil if there
// is none. What it passes over on the way moves, so that the next call does not
// meet it again soon: what was looked up gets on in main, what is limited in
// guarded.
func (s *shard) victimLocked(keep *entry, r *reading) *entry {
	size := s.lists[fresh].len + s.lists[main].len + s.lists[guarded].len
	for _, l := range [...]struct {
		from  place
		leave int // entries that may stay in the list
	}{{fresh, size / 10}, {main, 0}, {fresh, 0}, {guarded, 0}} {
		// Each entry is met at most maxHits + 1 times before its credit is used up.
		for steps := s.lists[l.from].len * (maxHits + 1); steps > 0 && s.lists[l.from].len > l.leave; steps-- {
			e := s.lists[l.from].front
			switch {
			case e == keep:
				s.moveLocked(e, l.from)
			case s.limitedLocked(e, r):
				s.moveLocked(e, guarded)
			case e.hits > 0 && l.from == fresh:
				e.hits = 0
				s.moveLocked(e, main)
			case e.hits > 0:
				e.hits--
				s.moveLocked(e, main)
			default:
				return e
			}
		}
	}
	return nil
}

// anyLocked returns the entry to evict when all are limited: the one that has been
// guarded longest, other than keep; nil if there is none.
func (s *shard) anyLocked(keep *entry) *entry {
	for _, p := range [...]place{guarded, main, fresh} {
		for e := s.lists[p].front; e != nil; e = e.next {
			if e != keep {
				return e
			}
		}
	}
	return nil
}

// makeRoom brings the table within its bound when a shard alone could not: an
// unlimited entry of any shard goes before a limited one of the home shard, and
// keep stays. It requires that no shard's lock is held.
func (t *table) makeRoom(home uint64, keep *entry, r *reading) {
	for pass := range 2 {
		for i := range t.shards {
			s := t.shardOf(home + uint64(i))
			for t.live.Load() > t.limit {
				s.mu.Lock()
				e := s.victimLocked(keep, r)
				if e == nil && pass == 1 {
					e = s.anyLocked(keep)
				}
				if e != nil {
					s.evictLocked(e, evictSize)
				}
				s.mu.Unlock()
				if e == nil {
					break
				}
			}
		}
	}
}
