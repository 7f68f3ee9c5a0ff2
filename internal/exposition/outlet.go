package exposition

// This file exposes sets with those of package metrics, or as a part of another set.
// The registry of package metrics is one for the process, and a set does not say what
// was joined to it, so what is kept here about them is state of the package.

import (
	"io"
	"runtime"
	"sync"
	"weak"

	"github.com/VictoriaMetrics/metrics"
)

// global is what package metrics writes beside its own. It is registered once and stays
// so: while nothing is exposed it writes nothing.
var global = sync.OnceValue(func() *book {
	b := new(book)
	outlet := metrics.NewSet()
	outlet.RegisterMetricsWriter(func(w io.Writer) { Write(w, b.sets()...) })
	metrics.RegisterSet(outlet)
	return b
})

// Expose has package metrics write the set with its others, under a name that one set
// can have at a time: of several the one that claimed it first, and when that is
// withdrawn the next. first is false if another one has it now. withdraw may be called
// more than once. Safe for concurrent use.
func Expose(name string, set *metrics.Set) (withdraw func(), first bool) {
	b := global()
	first = b.claim(name, set)
	return func() { b.withdraw(name, set) }, first
}

var (
	joinedMu sync.Mutex
	joined   = map[weak.Pointer[metrics.Set]]*book{} // guarded by joinedMu; an entry goes with its set
)

// Join has whole write the set with what it holds, under a name as [Expose] has.
func Join(whole *metrics.Set, name string, set *metrics.Set) (withdraw func()) {
	b := bookOf(whole)
	b.claim(name, set)
	return func() { b.withdraw(name, set) }
}

// bookOf returns what is joined to a set.
func bookOf(whole *metrics.Set) *book {
	joinedMu.Lock()
	defer joinedMu.Unlock()
	key := weak.Make(whole)
	b := joined[key]
	if b == nil {
		b = new(book)
		joined[key] = b
		whole.RegisterMetricsWriter(func(w io.Writer) {
			for _, set := range b.sets() {
				set.WritePrometheus(w)
			}
		})
		runtime.AddCleanup(whole, func(key weak.Pointer[metrics.Set]) {
			joinedMu.Lock()
			defer joinedMu.Unlock()
			delete(joined, key)
		}, key)
	}
	return b
}
