package ratelimit

// This file decides about several entities at once: the user's, the tenant's and
// the global limit of one request, all or nothing.

import (
	"cmp"
	"slices"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// An Item is one entity and what it is asked for.
type Item struct {
	Key   string // the empty one is a key like any other
	Units uint64 // taken as at most 2^53 − 1; 0 only looks
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
	var few [8]demand
	var again [8]repeat
	decisions := make(Decisions, len(items))
	demands, repeats := l.demandsOf(items, few[:0], again[:0])

	r := l.read()
	lockAll(demands)
	l.decideAllLocked(demands, decisions, &r)
	roundEnds := unlockAll(demands)

	for i := range demands {
		dm := &demands[i]
		if dm.wake {
			dm.entry.partition.wakeUp()
		}
		if dm.created {
			l.table.makeRoom(dm.hash, dm.entry, &r)
		}
	}
	for _, rep := range repeats {
		decisions[rep.item] = decisions[rep.first]
	}
	if roundEnds {
		l.renewClock()
	}
	return decisions
}

// A demand is what one CheckAll asks of one key.
type demand struct {
	key   string
	name  string // the representation of key
	hash  uint64 // of name
	shard *shard // of hash
	request
	item int // index of the first item of the key

	entry   *entry // locked; nil if the table holds none
	limited bool
	created bool // entry is new: the table may be beyond its bound
	wake    bool // the entry's partition
}

// asked is what the demand must fit with: one of no units as one of one would.
func (dm *demand) asked() float64 { return max(1, level.Float(dm.units)) }

// A repeat is an item whose key an earlier item has, by their indices.
type repeat struct{ item, first int }

// demandsOf appends one demand for each key to demands, in the order in which their
// shards are locked, and the items beyond the first of a key to repeats. It asks the
// resolver.
func (l *Limiter) demandsOf(items []Item, demands []demand, repeats []repeat) ([]demand, []repeat) {
	for i, item := range items {
		name := representation(item.Key, l.maxKeyBytes)
		hash := l.table.hash(name)
		demands = append(demands, demand{
			key: item.Key, name: name, hash: hash, shard: l.table.shardOf(hash),
			request: request{units: units(item.Units), resolved: true}, item: i,
		})
	}
	shards := uint64(len(l.table.shards))
	slices.SortStableFunc(demands, func(a, b demand) int {
		return cmp.Or(cmp.Compare(a.hash%shards, b.hash%shards), cmp.Compare(a.name, b.name))
	})
	overrides := l.thresholds.current.Load()
	kept := demands[:0]
	for _, dm := range demands {
		if n := len(kept); n > 0 && kept[n-1].name == dm.name {
			kept[n-1].units = units(kept[n-1].units + dm.units)
			repeats = append(repeats, repeat{item: dm.item, first: kept[n-1].item})
			continue
		}
		dm.threshold, dm.custom = l.thresholds.resolve(overrides, dm.key)
		kept = append(kept, dm)
	}
	return kept, repeats
}

// lockAll locks the shards of the demands, each once, in the order of the table. No
// other function holds the locks of two shards, or of two entries; those of the entries
// are taken under all of these, so their order does not matter.
func lockAll(demands []demand) {
	for i := range demands {
		if i == 0 || demands[i].shard != demands[i-1].shard {
			demands[i].shard.mu.Lock()
		}
	}
}

// unlockAll lets go of the entries and the shards. It reports whether the system's clock is
// due to be read again: a group with a key that the table did not hold takes long.
func unlockAll(demands []demand) (roundEnds bool) {
	for i := range demands {
		dm := &demands[i]
		if roundEnds = roundEnds || dm.entry == nil || dm.created || dm.entry.roundEndsLocked(dm.hash); dm.entry != nil {
			dm.entry.mu.Unlock()
		}
	}
	for i := range demands {
		if i == 0 || demands[i].shard != demands[i-1].shard {
			demands[i].shard.mu.Unlock()
		}
	}
	return roundEnds
}

// decideAllLocked puts the decision about each demand where that of its first item
// goes. It looks at all demands first. Then each is decided as a check of its own
// would be, but one that is allowed in vain counts nothing. It requires the locks of all
// shards, and locks the demands' entries.
func (l *Limiter) decideAllLocked(demands []demand, decisions Decisions, r *reading) {
	refused, open := false, true
	for i := range demands {
		dm := &demands[i]
		dm.epoch = r.epoch
		l.examineLocked(dm, r)
		refused = refused || dm.limited
		open = open && !dm.shard.closed.Load() // a group that meets Close comes after it as a whole
	}
	for i := range demands {
		dm, d := &demands[i], &decisions[demands[i].item]
		q := dm.request
		q.look = refused && !dm.limited && !l.countLimited
		if dm.entry != nil {
			dm.wake = l.decideLocked(d, dm.shard, dm.entry, &q, r, open)
		} else {
			c := check{request: q, at: *r, key: dm.key, name: dm.name, hash: dm.hash, shard: dm.shard}
			dm.entry = l.firstContactLocked(d, &c, open)
			dm.created = dm.entry != nil
		}
	}
}

// examineLocked finds the demand's entry and whether a check of its own would be
// limited, and locks the entry. It requires the lock of the shard.
func (l *Limiter) examineLocked(dm *demand, r *reading) {
	dm.entry = dm.shard.findLocked(&dm.request, dm.hash, dm.name, r)
	e := dm.entry
	if e == nil {
		dm.limited = l.refusesUnknown(&dm.request)
		return
	}
	l.setThresholdLocked(e, &dm.request, nil, dm.key)
	reached := e.levelLocked(r, &l.constants)
	dm.limited = !l.fits(reached, dm.asked(), dm.threshold)
	if dm.limited && r.into == 0 {
		var m level.Leaky
		e.modelLocked(&m, r, l.window)
		dm.limited = !l.turnLocked(e, &m, r, dm.asked())
	}
	if l.bursts && !dm.limited {
		held := e.bucketLocked(&l.constants, r, reached)
		dm.limited = !l.burst.Fits(held, dm.asked(), dm.threshold)
	}
}
