package ratelimittest

// This file is the schedule that this library improves on, as the design document
// that it grew from draws it, to compare with: reads only by tier, the answer to a
// write unused, a limited entity not read, pending units kept until a read.

import (
	"context"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A DocumentFleet is nodes that follow the document's request flow to the letter.
// It has the lockout that follows from it: units pending since the last read shrink
// only by a read, only an allowed request asks for one, and so a key whose pending
// units alone reach the threshold stays limited until its entry expires.
//
// It is not safe for concurrent use.
type DocumentFleet struct {
	clock *Clock
	store *Store
	cfg   ratelimit.Config
	nodes []*documentNode
}

// NewDocumentFleet returns n nodes on a new clock that starts at start, and a new
// [Store]. Of cfg it uses the threshold, the window, the sync and tick intervals, and
// the cache's TTL and idle timeout. Ticks are spread as in a [Fleet].
func NewDocumentFleet(start time.Time, n int, cfg ratelimit.Config) *DocumentFleet {
	c := NewClockAt(start)
	f := &DocumentFleet{clock: c, store: NewStore(c), cfg: cfg.Resolved()}
	for i := range n {
		node := &documentNode{
			fleet: f, link: f.store.Link(), clock: &nodeClock{clock: c, phase: spread(i, n)},
			sequence: "document:" + strconv.Itoa(i) + ":seq",
			entries:  map[string]*documentEntry{}, updates: map[documentCounter]uint64{},
		}
		node.clock.Tick(f.cfg.TickInterval, node.tick)
		f.nodes = append(f.nodes, node)
	}
	return f
}

// Len returns the number of nodes.
func (f *DocumentFleet) Len() int { return len(f.nodes) }

// Advance lets d pass; ticks that become due run.
func (f *DocumentFleet) Advance(d time.Duration) { f.clock.Advance(d) }

// Limit returns the threshold and the window.
func (f *DocumentFleet) Limit(string) (threshold uint64, window time.Duration) {
	return f.cfg.GlobalThreshold, f.cfg.WindowInterval
}

// Link returns node i's way to the store, to make it fail.
func (f *DocumentFleet) Link(i int) *Store { return f.nodes[i].link }

// SetOffset puts node i's wall ahead of the fleet's by d.
func (f *DocumentFleet) SetOffset(i int, d time.Duration) { f.nodes[i].clock.offset.Store(int64(d)) }

// Requests returns the sum of what the nodes asked of the store: a read is a key of
// an MGET.
func (f *DocumentFleet) Requests() (sum Requests) {
	for _, n := range f.nodes {
		r := n.link.Requests()
		sum.Attempts += r.Attempts
		sum.Answered += r.Answered
		sum.Writes += r.Writes
		sum.Reads += n.reads
	}
	return sum
}

// A documentNode is one node.
type documentNode struct {
	fleet    *DocumentFleet
	link     *Store
	clock    *nodeClock
	sequence string
	number   uint64
	reads    uint64 // keys read, by answered pipelines

	entries map[string]*documentEntry
	updates map[documentCounter]uint64 // what the channel aggregates to
	order   []documentCounter          // of updates, by first request
	sync    []*documentEntry           // pending_sync
}

// A documentEntry is the document's CacheEntry.
type documentEntry struct {
	key       string
	estimated float64 // weighted count as of the last read
	syncedAt  int64   // mono
	pending   uint64  // counted here since the last read
	queued    bool    // in pending_sync

	bornAt, usedAt int64 // mono
}

// A documentCounter is an entity's count in one epoch.
type documentCounter struct {
	key   string
	epoch int64
}

// Offer has a node decide: the document's check_limit.
func (f *DocumentFleet) Offer(node int, key string, units uint64) (allowed bool) {
	return f.nodes[node].check(key, units)
}

func (n *documentNode) check(key string, units uint64) (allowed bool) {
	wall, mono := n.clock.Now()
	cfg := &n.fleet.cfg
	e := n.entries[key]
	if e == nil || mono-e.bornAt >= int64(cfg.LocalCacheTTL) || mono-e.usedAt >= int64(cfg.LocalCacheIdleTimeout) {
		// Cache miss: insert fresh entry, queue sync, allow.
		e = &documentEntry{key: key, syncedAt: mono, bornAt: mono, usedAt: mono}
		n.entries[key] = e
		n.queue(e)
		n.count(e, units, wall)
		return true
	}
	e.usedAt = mono
	threshold, window := float64(cfg.GlobalThreshold), float64(cfg.WindowInterval)
	drain := threshold / window * float64(mono-e.syncedAt)
	level := max(0, e.estimated-drain) + float64(e.pending) + float64(units)
	if level >= threshold {
		return false
	}
	if n.needsSync(level/threshold, mono-e.syncedAt) {
		n.queue(e)
	}
	n.count(e, units, wall)
	return true
}

// needsSync is the document's pressure tiers.
func (n *documentNode) needsSync(pressure float64, age int64) bool {
	interval := int64(n.fleet.cfg.SyncInterval)
	switch {
	case pressure < 0.10:
		return false
	case pressure < 0.50:
		return age >= 4*interval
	case pressure < 0.80:
		return age >= interval
	default:
		return age >= interval/2
	}
}

// queue pushes the entry to pending_sync, a set.
func (n *documentNode) queue(e *documentEntry) {
	if !e.queued {
		e.queued = true
		n.sync = append(n.sync, e)
	}
}

// count records units locally and enqueues the update.
func (n *documentNode) count(e *documentEntry, units uint64, wall int64) {
	e.pending += units
	c := documentCounter{e.key, floorDiv(wall, int64(n.fleet.cfg.WindowInterval))}
	if _, ok := n.updates[c]; !ok {
		n.order = append(n.order, c)
	}
	n.updates[c] += units
}

// tick runs the document's background tick: one pipeline of writes and reads. What a
// failed one carried is lost.
func (n *documentNode) tick() {
	if len(n.order) == 0 && len(n.sync) == 0 {
		return
	}
	wall, mono := n.clock.Now()
	window := int64(n.fleet.cfg.WindowInterval)
	epoch := floorDiv(wall, window)
	n.number++
	b := &store.Batch{
		Sequence: n.sequence, Number: n.number, Nonce: n.number, SequenceTTL: time.Hour,
		WindowKey: "document:window", Window: n.fleet.cfg.WindowInterval, TTL: n.fleet.cfg.GlobalCacheTTL,
	}
	written := map[documentCounter]int{}
	for _, c := range n.order {
		written[c] = len(b.Writes)
		b.Writes = append(b.Writes, store.Write{Key: n.counterKey(c), Delta: int64(n.updates[c])})
	}
	// The MGET of both epochs; what the same pipeline writes has its total in the
	// answer to the write, which here stands for reading it.
	read := map[documentCounter]int{}
	for _, e := range n.sync {
		for _, c := range [...]documentCounter{{e.key, epoch}, {e.key, epoch - 1}} {
			if _, ok := written[c]; !ok {
				read[c] = len(b.Reads)
				b.Reads = append(b.Reads, n.counterKey(c))
			}
		}
	}
	synced := n.sync
	n.order, n.sync, n.updates = nil, nil, map[documentCounter]uint64{}
	for _, e := range synced {
		e.queued = false
	}
	var reply store.Reply
	if n.link.Apply(context.Background(), b, &reply) != nil {
		return
	}
	total := func(c documentCounter) float64 {
		if i, ok := written[c]; ok {
			return float64(reply.Writes[i].Total)
		}
		return float64(reply.Reads[read[c]])
	}
	progress := float64(wall-epoch*window) / float64(window)
	for _, e := range synced {
		n.reads += 2
		e.estimated = total(documentCounter{e.key, epoch - 1})*(1-progress) + total(documentCounter{e.key, epoch})
		e.syncedAt, e.pending = mono, 0
	}
}

func (n *documentNode) counterKey(c documentCounter) string {
	return n.fleet.cfg.RedisKeyPrefix + ":" + c.key + ":" + strconv.FormatInt(c.epoch, 10)
}

// floorDiv is a / b rounded down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
