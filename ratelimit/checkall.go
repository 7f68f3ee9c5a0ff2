package ratelimit

// This file decides about several entities at once, of one limiter or of several: the
// user's, the tenant's and the global limit of one request, all or nothing.

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hanzoai/limiters/internal/level"
)

// An Item is one entity and what it is asked for.
type Item struct {
	Key     string   // the empty one is a key like any other
	Units   uint64   // taken as at most 2^53 − 1; 0 only looks
	Limiter *Limiter // whose entity it is; nil: of the limiter whose CheckAll is called
}

// Decisions are the answers to the items of one [Limiter.CheckAll], in their order.
type Decisions []Decision

// Allowed reports whether the caller should go on: whether every item is allowed, those of
// a limiter in a dry run always being so. It is true of no decisions.
func (ds Decisions) Allowed() bool {
	for i := range ds {
		if !ds[i].Allowed() {
			return false
		}
	}
	return true
}

// RetryAfter returns the smallest wait after which the same items would all pass,
// as [Decision.RetryAfter] does for one: the longest wait of any. A limiter in a dry run
// has nobody wait whom another refuses.
func (ds Decisions) RetryAfter() (wait time.Duration) {
	pass := ds.Allowed()
	for i := range ds {
		if pass || !ds[i].Allowed() {
			wait = max(wait, ds[i].RetryAfter())
		}
	}
	return wait
}

// CheckAll decides whether the units of all items may pass now, and counts them if
// every item is allowed; if any is limited, none is counted. There is one Decision for
// each item. Its verdict is the item's own: in a group that was refused, those that are
// allowed are not to blame, and are not counted either. Items of one limiter with equal
// keys are one request of their sum, and share its Decision. Each key counts as one
// decision in [Stats]. An item of no units only looks.
//
// Items may be of several limiters: 10 per second and 1,000 per hour of one user, or a
// user's window beside a tenant's calendar month. Each limiter decides as it is set up:
//   - with Config.CountLimited its items are counted whatever the verdicts, as a single
//     check counts what it limits;
//   - in a dry run (Config.DryRun) it refuses nobody. It counts its items if they are all
//     allowed, and no limiter refuses that is not in a dry run: what it says of its own items
//     never decides what others count;
//   - closed, it still says what it knows, and counts nothing for the fleet.
//
// It is one step: no other check of any of the keys comes in between, no unit too
// many passes from this process, and a Close of a limiter comes before or after the whole.
// The fleet learns of the keys as of others, each by its partition's next tick. For the
// rest it is as [Limiter.Check]. It allocates its answer, and little else for up to
// eight items; groups may name limiters and keys in any order, from any goroutine.
func (l *Limiter) CheckAll(items []Item) Decisions {
	if len(items) == 0 {
		return nil
	}
	return l.checkAll(items, nil)
}

// checkAll is CheckAll. It has reservations hold what is counted, if there are as many of them as
// items: of each key that of its first item, which becomes that of the others.
func (l *Limiter) checkAll(items []Item, reservations Reservations) Decisions {
	var few [8]demand
	var again [8]repeat
	decisions := make(Decisions, len(items))
	demands, repeats := l.demandsOf(items, few[:0], again[:0])

	lockAll(demands)
	decideAllLocked(demands, decisions)
	unlockAll(demands)

	for i := range demands {
		dm := &demands[i]
		if dm.wake {
			dm.entry.partition.wakeUp()
		}
		if dm.created {
			dm.l.table.makeRoom(dm.hash, dm.entry, &dm.at)
		}
		if dm.roundEnds {
			dm.l.renewClock()
		}
		if reservations != nil {
			reservations[dm.item].hold(dm, &decisions[dm.item])
		}
	}
	for _, rep := range repeats {
		decisions[rep.item] = decisions[rep.first]
		if reservations != nil {
			reservations[rep.item] = reservations[rep.first]
		}
	}
	return decisions
}

// lockOrders numbers the limiters of this process, for the order in which a group takes their
// locks. It is the one state of this package that is not a limiter's: limiters that do not
// know of each other must agree on an order.
var lockOrders atomic.Uint64

// A demand is what one CheckAll asks of one key.
type demand struct {
	l     *Limiter
	at    reading // of the limiter's clock, one for all its demands
	key   string
	name  string // the representation of key
	hash  uint64 // of name
	shard *shard // of hash
	request
	item int // index of the first item of the key

	entry     *entry // locked; nil if the table holds none
	limited   bool
	created   bool // entry is new: the table may be beyond its bound
	counted   bool // the units, in entry
	open      bool // they were counted for the fleet
	wake      bool // the entry's partition
	roundEnds bool // the system's clock is due to be read again
}

// shardIndex is where the shard stands in the order of the table.
func (dm *demand) shardIndex() uint64 { return dm.hash % uint64(len(dm.l.table.shards)) }

// asked is what the demand must fit with: one of no units as one of one would.
func (dm *demand) asked() float64 { return max(1, level.Float(dm.units)) }

// A repeat is an item whose key an earlier item has, by their indices.
type repeat struct{ item, first int }

// demandsOf appends one demand for each key of a limiter to demands, in the order in which
// their shards are locked, and the items beyond the first of a key to repeats. It reads the
// limiters' clocks and asks their resolvers.
func (l *Limiter) demandsOf(items []Item, demands []demand, repeats []repeat) ([]demand, []repeat) {
	for i, item := range items {
		of := item.Limiter
		if of == nil {
			of = l
		}
		name := of.KeyName(item.Key)
		hash := of.table.hash(name)
		demands = append(demands, demand{
			l: of, key: item.Key, name: name, hash: hash, shard: of.table.shardOf(hash),
			request: request{units: units(item.Units), resolved: true}, item: i,
		})
	}
	slices.SortStableFunc(demands, func(a, b demand) int {
		return cmp.Or(cmp.Compare(a.l.order, b.l.order), cmp.Compare(a.shardIndex(), b.shardIndex()), cmp.Compare(a.name, b.name))
	})
	var overrides *snapshot
	kept := demands[:0]
	for _, dm := range demands {
		if n := len(kept); n > 0 && kept[n-1].l == dm.l {
			before := &kept[n-1]
			if before.name == dm.name {
				before.units = units(before.units + dm.units)
				repeats = append(repeats, repeat{item: dm.item, first: before.item})
				continue
			}
			dm.at = before.at
		} else {
			dm.at, overrides = dm.l.read(), dm.l.thresholds.current.Load()
		}
		dm.epoch = dm.at.epoch
		dm.threshold, dm.custom = dm.l.thresholds.resolve(overrides, dm.key)
		kept = append(kept, dm)
	}
	return kept, repeats
}

// lockAll locks the shards of the demands, each once, in the order of the limiters and
// of their tables. No other function holds the locks of two shards, or of two entries; those of
// the entries are taken under all of these, so their order does not matter.
func lockAll(demands []demand) {
	for i := range demands {
		if i == 0 || demands[i].shard != demands[i-1].shard {
			demands[i].shard.mu.Lock()
		}
	}
}

// unlockAll lets go of the entries and the shards. It notes where the system's clock is due
// to be read again: a group with a key that the table did not hold takes long.
func unlockAll(demands []demand) {
	for i := range demands {
		dm := &demands[i]
		if dm.roundEnds = dm.entry == nil || dm.created || dm.entry.roundEndsLocked(dm.hash); dm.entry != nil {
			dm.entry.unlock()
		}
	}
	for i := range demands {
		if i == 0 || demands[i].shard != demands[i-1].shard {
			demands[i].shard.mu.Unlock()
		}
	}
}

// decideAllLocked puts the decision about each demand where that of its first item
// goes. It looks at all demands first. Then each is decided as a check of its own
// would be, but one that is allowed in vain counts nothing. It requires the locks of all
// shards, and locks the demands' entries.
func decideAllLocked(demands []demand, decisions Decisions) {
	refused := false // by a limiter that is not in a dry run
	for i := range demands {
		dm := &demands[i]
		dm.l.examineLocked(dm, &dm.at)
		refused = refused || dm.limited && !dm.l.dryRun
	}
	for len(demands) > 0 {
		own := ofOneLimiter(demands)
		demands = demands[len(own):]
		limited, open := false, true
		for i := range own {
			limited = limited || own[i].limited
			open = open && !own[i].shard.closed.Load() // a group that meets Close comes after it as a whole
		}
		for i := range own {
			own[i].decideLocked(&decisions[own[i].item], refused || limited, open)
		}
	}
}

// ofOneLimiter returns the first demands, as far as they are of one limiter.
func ofOneLimiter(demands []demand) []demand {
	for i := range demands {
		if demands[i].l != demands[0].l {
			return demands[:i]
		}
	}
	return demands
}

// decideLocked puts the decision about the demand into d. It counts for the fleet if open,
// and nothing if it is allowed in vain.
func (dm *demand) decideLocked(d *Decision, inVain, open bool) {
	l, q := dm.l, dm.request
	q.look = inVain && !dm.limited && !l.countLimited
	if dm.entry != nil {
		dm.wake = l.decideLocked(d, dm.shard, dm.entry, &q, &dm.at, open)
	} else {
		c := check{request: q, at: dm.at, key: dm.key, name: dm.name, hash: dm.hash, shard: dm.shard}
		dm.entry = l.firstContactLocked(d, &c, open)
		dm.created = dm.entry != nil
	}
	dm.open = open
	dm.counted = dm.entry != nil && q.units > 0 && !q.look && (d.verdict != VerdictLimited || l.countLimited)
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
