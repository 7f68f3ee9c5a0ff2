package ratelimit

// This file learns the fleet's count of a key that this node does not know and was only
// asked about. Such a question leaves no entry: if the fleet knows nothing of the key
// either, it stays unknown.

// mostAsked is how many questions about unknown keys wait for a tick of a partition; more
// are not asked.
const mostAsked = 256

// ask has the next tick read the counters of a key that the table does not hold.
func (l *Limiter) ask(c *check) {
	p := l.table.owner(c.name)
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for _, e := range p.queue.asked {
		if e.hash == c.hash && e.key == c.name {
			return
		}
	}
	if len(p.queue.asked) == mostAsked {
		return
	}
	e := newEntry(c.name)
	e.hash, e.partition, e.place = c.hash, p, asked
	e.epoch, e.usedAt, e.wantRead = c.at.epoch, c.at.mono, true
	e.threshold, e.custom = c.threshold, c.custom
	p.queue.asked = append(p.queue.asked, e)
}

// takeAsked appends entries of keys that were asked about to taken, up to limit in all.
func (q *queue) takeAsked(taken []*entry, limit int) []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := max(0, min(limit-len(taken), len(q.asked)))
	taken = append(taken, q.asked[:n]...)
	if q.asked = q.asked[n:]; len(q.asked) == 0 {
		q.asked = nil
	}
	return taken
}

// adoptLocked puts entries that were asked about into the table, if the fleet's counters
// hold something and nobody else did meanwhile. It requires p.mu, and no lock of the table.
func (p *partition) adoptLocked() {
	for i := range p.batch.items {
		e := p.batch.items[i].entry
		e.lock()
		found := e.place == asked && e.slots[0].total|e.slots[1].total != 0
		e.unlock()
		if !found {
			continue
		}
		s := p.l.table.shardOf(e.hash)
		s.mu.Lock()
		e.lock()
		if s.entries.find(e.hash, e.key) == nil && !s.closed.Load() {
			s.addLocked(e)
		}
		e.unlock()
		s.mu.Unlock()
	}
}
