package ratelimit

// This file looks for limiters whose counters may be this one's as well: the prefix "p"
// and the key "a:b" name the same counter as the prefix "p:a" and the key "b".

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// neighbors are the shorter prefixes that a partition's own extends at a colon, and which
// of them are in use. It has nothing to look for if the prefix holds no colon.
type neighbors struct {
	prefixes []string    // immutable
	batch    store.Batch // immutable; a look at the window keys of prefixes
	reply    store.Reply // of the holder of turn

	due   bool     // guarded by the partition's mu; after first contact, and after an outage
	found []string // guarded by the partition's mu; of prefixes
}

// neighborsOf prepares the look for a partition whose other batches begin like b. The tag
// is what comes before the prefix in all its keys.
func neighborsOf(tag, prefix string, b *store.Batch) (n neighbors) {
	for i, c := range []byte(prefix) {
		if c == ':' && i > 0 {
			n.prefixes = append(n.prefixes, tag+prefix[:i])
		}
	}
	n.batch = *b
	n.batch.Sequence = sequenceKey(tag+prefix, "look")
	for _, p := range n.prefixes {
		n.batch.Reads = append(n.batch.Reads, windowKey(p))
	}
	n.due = len(n.prefixes) > 0
	return n
}

// lookAround looks for neighbors if that is due. It is a request of its own and counts
// no error: where a user may not read other prefixes, or a cluster holds them elsewhere,
// nothing is found and nothing else denied. It requires the turn.
func (p *partition) lookAround(ctx context.Context) {
	n := &p.neighbors
	p.mu.Lock()
	due := n.due && p.health.up && !p.settled
	n.due = n.due && !due
	p.mu.Unlock()
	if !due {
		return
	}
	n.reply.Number, n.reply.Outcome = 1, 0 // no answer to this look
	err := p.store.Apply(ctx, &n.batch, &n.reply)
	if err != nil || n.reply.Number != 0 || n.reply.Outcome != store.Looked || len(n.reply.Reads) != len(n.prefixes) {
		return
	}
	var found []string
	for i, window := range n.reply.Reads {
		if window > 0 {
			found = append(found, n.prefixes[i])
		}
	}
	p.mu.Lock()
	changed := !slices.Equal(found, n.found)
	n.found = found
	p.mu.Unlock()
	p.l.metrics.overlappingPrefixes[p.index].Set(float64(len(found)))
	if changed && len(found) > 0 {
		p.l.logger.Warn("ratelimit: limiters under a shorter key prefix are in use; keys of theirs may share counters with this one's",
			slog.String("scope", p.l.cfg.Scope), slog.String("partition", p.name),
			slog.String("prefix", p.prefix), slog.String("in_use", strings.Join(found, ", ")))
	}
}
