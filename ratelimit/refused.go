package ratelimit

// This file keeps whom this node refuses most: a bounded list that is added to when
// entities' counts are collected, and by decisions that leave no entity, so that a
// refusal of a known entity pays for an addition alone.

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// mostRefused is how many entities the list holds.
const mostRefused = 256

// A Refused is how many units of one entity this node refused.
type Refused struct {
	Key   string // the entity key, or what stands for it ([Limiter.KeyName])
	Units uint64 // since the entity came into the list, and what it displaced
	Over  uint64 // of Units, at most how many may have been another entity's
}

// A refusals is the list: of a full one a new entity displaces that with the fewest
// units and begins at its count (Metwally's Space-Saving), so that nobody refused
// more than a 256th of all can be missing. Safe for concurrent use.
type refusals struct {
	mu   sync.Mutex
	heap []*Refused     // guarded by mu; the fewest units first
	at   map[string]int // guarded by mu; where in heap a key is
}

// add counts refused units of an entity, by its representation. 0 is nothing.
func (f *refusals) add(name string, units uint64) {
	if units == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[string]int{}
	}
	i, known := f.at[name]
	switch {
	case known:
		f.heap[i].Units = plus(f.heap[i].Units, units)
	case len(f.heap) < mostRefused:
		i = len(f.heap)
		f.heap = append(f.heap, &Refused{Key: strings.Clone(name), Units: units})
		f.at[f.heap[i].Key] = i
		f.upLocked(i)
		return
	default:
		least := f.heap[0]
		delete(f.at, least.Key)
		f.heap[0] = &Refused{Key: strings.Clone(name), Units: plus(least.Units, units), Over: least.Units}
		f.at[f.heap[0].Key], i = 0, 0
	}
	f.downLocked(i)
}

func (f *refusals) upLocked(i int) {
	for i > 0 && f.heap[i].Units < f.heap[(i-1)/2].Units {
		f.swapLocked(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (f *refusals) downLocked(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(f.heap); child++ {
			if f.heap[child].Units < f.heap[least].Units {
				least = child
			}
		}
		if least == i {
			return
		}
		f.swapLocked(i, least)
		i = least
	}
}

func (f *refusals) swapLocked(i, j int) {
	f.heap[i], f.heap[j] = f.heap[j], f.heap[i]
	f.at[f.heap[i].Key], f.at[f.heap[j].Key] = i, j
}

// MostRefused returns up to n entities of which this node refused the most units since
// it was made, the most first, equals by key; in a dry run those that it would have
// refused. It keeps 256: nobody with more than a 256th of all refused units is missing,
// and Over bounds the error. n ≤ 0 is none. Refused requests of 0 units add nothing.
func (l *Limiter) MostRefused(n int) []Refused {
	l.table.counts() // collects
	f := &l.table.refusals
	f.mu.Lock()
	all := make([]Refused, len(f.heap))
	for i, r := range f.heap {
		all[i] = *r
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Key, b.Key))
	})
	return all[:max(0, min(n, len(all)))]
}
