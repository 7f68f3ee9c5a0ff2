package ratelimit

// This file decides about several entities at once: the user's, the tenant's and
// the global limit of one request, all or nothing.

import (
	"cmp"
	"slices"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// An Item is one entity and what it is asked for.
type Item struct {
	Key   string
	Units uint64
}

// Decisions are the answers to the items of one [Limiter.CheckAll], in their order.
type Decisions []Decision

// Allowed reports whether the caller should go on: whether every item is allowed,
// and always in a dry run. It is true of no decisions.
func (ds Decisions) Allowed() bool {
	for i := range ds {
		if !ds[i].Allowed() {
			return false
		}
	}
	return true
}

// RetryAfter returns the smallest wait after which the same items would all pass,
// as [Decision.RetryAfter] does for one: the longest wait of any.
func (ds Decisions) RetryAfter() (wait time.Duration) {
	for i := range ds {
		wait = max(wait, ds[i].RetryAfter())
	}
	return wait
}

// CheckAll decides whether the units of all items may pass now, and counts them if
// every item is allowed; if any is limited, none is counted. With
// Config.CountLimited all are counted, whatever the verdicts, as a single check
// counts what it limits. A dry run decides and counts the same.
//
// There is one Decision for each item. Its verdict is the item's own: in a group
// that was refused, those that are allowed are not to blame, and are not counted
// either. Items of equal keys are one request of their sum, and share its Decision.
// Each key counts as one decision in [Stats]. An item of no units only looks.
//
// It is one step: no other check of any of the keys comes in between, no unit too
// many passes from this process, and a Close comes before or after the whole. The
// fleet learns of the keys as of others, each by its partition's next tick. For the
// rest it is as [Limiter.Check]; it allocates its answer, and little else for up to
// eight items.
func (l *Limiter) CheckAll(items []Item) Decisions {
	if len(items) == 0 {
		return nil
	}
	var scratch [8]claim
	var order [8]int
	claims, which := l.claims(scratch[:0], append(order[:0], make([]int, len(items))...), items)

	r := l.read()
	l.lockAll(claims)
	decisions := make(Decisions, len(items))
	l.decideAllLocked(claims, which, decisions, &r)
	l.unlockAll(claims)

	for i := range claims {
		if c := &claims[i]; c.changed {
			l.tidy(c.full, c.hash, c.entry, &r)
		}
	}
	for i := range decisions {
		decisions[i] = decisions[which[i]]
	}
	return decisions
}

// A claim is what one CheckAll asks of one key.
type claim struct {
	request
	key, name string
	hash      uint64
	shard     *shard
	first     int    // index of the first item of the key; its decision is the claim's
	entry     *entry // nil if the table holds none
	changed   bool   // the table may be beyond its bounds
	full      bool   // and the shard could not make room
}

// claims appends the claims of the items to claims, in the order in which their
// shards are locked, and puts into which the index of each item's decision. The
// resolver is asked here, before any lock.
func (l *Limiter) claims(claims []claim, which []int, items []Item) ([]claim, []int) {
	for i, item := range items {
		name := representation(item.Key, l.maxKeyBytes)
		hash := l.table.hash(name)
		claims = append(claims, claim{
			request: request{units: item.Units, resolved: true},
			key:     item.Key, name: name, hash: hash, shard: l.table.shardOf(hash), first: i,
		})
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(l.table.shardIndex(a.hash), l.table.shardIndex(b.hash)), cmp.Compare(a.name, b.name))
	})
	overrides := l.thresholds.current.Load()
	kept := claims[:0]
	for _, c := range claims {
		if n := len(kept); n > 0 && kept[n-1].name == c.name {
			which[c.first] = kept[n-1].first
			kept[n-1].units = min(kept[n-1].units, store.MaxUnits) + min(c.units, store.MaxUnits)
			continue
		}
		which[c.first] = c.first
		c.threshold, c.custom = l.thresholds.resolve(overrides, c.key)
		kept = append(kept, c)
	}
	return kept, which
}

// lockAll locks the claims' shards, each once, in the order of the table. Nothing
// else holds two shards' locks.
func (l *Limiter) lockAll(claims []claim) {
	for i := range claims {
		if i == 0 || claims[i].shard != claims[i-1].shard {
			claims[i].shard.mu.Lock()
		}
	}
}

func (l *Limiter) unlockAll(claims []claim) {
	for i := range claims {
		if i == 0 || claims[i].shard != claims[i-1].shard {
			claims[i].shard.mu.Unlock()
		}
	}
}

// decideAllLocked puts every claim's decision where its first item's goes. It looks
// at all claims first, and then decides each as a check of its own would, without
// units if they are not to be counted. It requires the locks of all shards.
func (l *Limiter) decideAllLocked(claims []claim, which []int, decisions Decisions, r *reading) {
	refused, closed := false, false
	for i := range claims {
		c := &claims[i]
		c.epoch = r.epoch
		c.entry, c.changed = c.shard.findLocked(c.hash, c.name, r)
		if c.entry != nil {
			c.entry.threshold, c.entry.custom, c.entry.generation = c.threshold, c.custom, 0
		}
		c.request.limited = l.limitsLocked(c, r)
		refused = refused || c.request.limited
		closed = closed || c.shard.closed
	}
	if closed { // Close has come to one of the shards: then it has come to all
		defer closeFor(claims)()
	}
	for i := range claims {
		c := &claims[i]
		d, q := &decisions[c.first], c.request
		_ = which
		if refused && !l.countLimited && !q.limited {
			q.units = 0
		}
		d.dryRun, d.custom, d.threshold, d.units = l.dryRun, q.custom, q.threshold, q.units
		if c.entry != nil {
			l.decideLocked(d, c.shard, c.entry, &q, r)
		} else if c.entry = l.firstContactLocked(d, c.shard, c.hash, c.name, &q, r); c.entry != nil {
			c.changed = true
		}
		if q.units != c.units {
			d.units = c.units
			d.level += float64(min(c.units, store.MaxUnits))
		}
	}
}
