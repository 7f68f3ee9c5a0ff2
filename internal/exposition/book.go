package exposition

// This file keeps who has a name: of several sets that claim it, the first.

import (
	"slices"
	"sync"

	"github.com/VictoriaMetrics/metrics"
)

// A book says which sets are exposed. The zero book is empty. Safe for concurrent use.
type book struct {
	mu     sync.Mutex
	claims map[string][]*metrics.Set // guarded by mu; by name, the oldest first
	names  []string                  // guarded by mu; of claims, in the order in which they came
}

// claim notes that a set claims a name, and reports whether it has it now.
func (b *book) claim(name string, set *metrics.Set) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.claims == nil {
		b.claims = map[string][]*metrics.Set{}
	}
	if first = len(b.claims[name]) == 0; first {
		b.names = append(b.names, name)
	}
	b.claims[name] = append(b.claims[name], set)
	return first
}

// withdraw takes a claim back, if it is there: the next set has the name then.
func (b *book) withdraw(name string, set *metrics.Set) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.claims[name], set)
	if i < 0 {
		return
	}
	if b.claims[name] = slices.Delete(b.claims[name], i, i+1); len(b.claims[name]) == 0 {
		delete(b.claims, name)
		b.names = slices.DeleteFunc(b.names, func(other string) bool { return other == name })
	}
}

// sets returns the sets that have their names.
func (b *book) sets() []*metrics.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	sets := make([]*metrics.Set, len(b.names))
	for i, name := range b.names {
		sets[i] = b.claims[name][0]
	}
	return sets
}
