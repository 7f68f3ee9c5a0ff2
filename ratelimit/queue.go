package ratelimit

// This file is a partition's list of entities that have something to say.

import (
	"sync"
	"sync/atomic"
)

// A rank orders the queue: a tick takes higher ranks first, each oldest first.
type rank uint8

const (
	rankIdle rank = iota // pressure below 10 %
	rankWarm             // from 10 % on
	rankHot              // from 80 % on: taken between ticks too, if so configured
	ranks
)

// A queue holds the entities of one partition that wait for a sync, each once. It is
// linked through the entries, so that it takes no memory of its own, and the table's bound
// is its own: whatever has unsent units is in it, or was just taken from it.
//
// Its lock is taken inside an entry's and a shard's, never the other way round.
type queue struct {
	entered atomic.Uint64 // entities that came to wait, since the start

	mu      sync.Mutex
	waiting [ranks]queueList // guarded by mu
	asked   []*entry         // guarded by mu; of unknown keys: see asked.go
	pressed []*entry         // guarded by mu; those that may need slices; a check does not let it grow
	missed  bool             // guarded by mu; pressed had no room for one
	ready   []*entry         // guarded by mu; those that may be taken between ticks, too, each once
}

// A queueList is linked by queuePrev and queueNext. The zero value is empty.
type queueList struct {
	front, back *entry
	len         int
}

// notePressed notes an entry that may need slices.
func (q *queue) notePressed(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.pressed) == cap(q.pressed) {
		q.missed = true
		return
	}
	q.pressed = append(q.pressed, e)
}

// takePressed returns the entries noted since the last call, and if there was no room for
// some, all that wait and may be pressed. before is what the last call returned: its room is
// used again. There is more room if there was too little.
func (q *queue) takePressed(before []*entry) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	noted, room := q.pressed, cap(q.pressed)
	clear(before)
	if q.missed {
		q.missed = false
		for r := rankWarm; r < ranks; r++ {
			for e := q.waiting[r].front; e != nil; e = e.queueNext {
				noted = append(noted, e)
			}
		}
		room = max(2*room, len(noted))
	}
	if q.pressed = before[:0]; cap(before) < room || cap(before) == 0 {
		q.pressed = make([]*entry, 0, max(leastPressed, room))
	}
	return noted
}

// leastPressed is how many pressed entries are noted until a tick at least.
const leastPressed = 256

// push queues the entry at a rank, as ready or not. One that waits already moves up if the
// rank is higher, and stays where it is if it becomes ready. It requires e's lock.
func (q *queue) push(e *entry, r rank, ready bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ready && len(q.ready) < cap(q.ready) {
		q.ready = append(q.ready, e)
	}
	if e.inQueue {
		if r <= e.queueRank {
			return
		}
		q.waiting[e.queueRank].remove(e)
	}
	e.inQueue, e.queueRank = true, r
	q.waiting[r].pushBack(e)
}

// readyFor returns whether a sync between ticks has something to take: entities of rankHot,
// and others.
func (q *queue) readyFor() (hot, others bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.ready {
		hot = hot || e.queueRank == rankHot
		others = others || e.queueRank < rankHot
	}
	return hot, others
}

// unreadyLocked forgets those that no longer wait.
func (q *queue) unreadyLocked() {
	kept := q.ready[:0]
	for _, e := range q.ready {
		if e.inQueue {
			kept = append(kept, e)
		}
	}
	clear(q.ready[len(kept):])
	q.ready = kept
}

// popReady takes up to limit entries off the queue that are ready, and appends them to
// taken.
func (q *queue) popReady(taken []*entry, limit int) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for ; n < len(q.ready) && len(taken) < limit; n++ {
		if e := q.ready[n]; e.inQueue {
			q.waiting[e.queueRank].remove(e)
			e.inQueue = false
			taken = append(taken, e)
		}
	}
	q.unreadyLocked()
	return taken
}

// A quota is how many entries a tick may still take, by rank.
type quota [ranks]int

// sum is how many entries it is in all.
func (q *quota) sum() (n int) {
	for _, of := range q {
		n += of
	}
	return n
}

// quota returns what a tick may take: of the entries that wait now, up to limit,
// those of the highest rank first and none below lowest. left is how many more of
// those ranks wait. Entries queued after it wait behind, for the next tick: one
// that is queued again as soon as it is answered does not keep the tick going.
func (q *queue) quota(limit int, lowest rank) (quota quota, left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for r := int(ranks) - 1; r >= int(lowest); r-- {
		quota[r] = min(limit, q.waiting[r].len)
		limit -= quota[r]
		left += q.waiting[r].len - quota[r]
	}
	return quota, left
}

// pop takes up to limit entries within the quota off the queue, those of the
// highest rank first, each rank's oldest first, and appends them to taken.
func (q *queue) pop(taken []*entry, limit int, quota *quota) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	for r := int(ranks) - 1; r >= 0; r-- {
		n := min(limit, quota[r], q.waiting[r].len)
		limit -= n
		quota[r] -= n
		taken = q.waiting[r].popFront(taken, n)
	}
	q.unreadyLocked()
	return taken
}

// remove takes the entry out of the queue if it waits there.
func (q *queue) remove(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e.inQueue {
		q.waiting[e.queueRank].remove(e)
		e.inQueue = false
		q.unreadyLocked()
	}
}

// len returns how many entities wait.
func (q *queue) len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.waiting {
		n += q.waiting[i].len
	}
	return n
}

func (l *queueList) pushBack(e *entry) {
	e.queuePrev, e.queueNext = l.back, nil
	if l.back == nil {
		l.front = e
	} else {
		l.back.queueNext = e
	}
	l.back = e
	l.len++
}

// popFront takes the n entries at the front off the list and appends them to taken.
// It touches each once, for most are not in the cache.
func (l *queueList) popFront(taken []*entry, n int) []*entry {
	e := l.front
	for range n {
		next := e.queueNext
		e.queuePrev, e.queueNext, e.inQueue = nil, nil, false
		taken = append(taken, e)
		e = next
	}
	if l.front = e; e == nil {
		l.back = nil
	} else {
		e.queuePrev = nil
	}
	l.len -= n
	return taken
}

func (l *queueList) remove(e *entry) {
	if e.queuePrev == nil {
		l.front = e.queueNext
	} else {
		e.queuePrev.queueNext = e.queueNext
	}
	if e.queueNext == nil {
		l.back = e.queuePrev
	} else {
		e.queueNext.queuePrev = e.queuePrev
	}
	e.queuePrev, e.queueNext = nil, nil
	l.len--
}
