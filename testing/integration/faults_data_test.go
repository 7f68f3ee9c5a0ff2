// This file tampers with what servers hold: counters that are none, and sequence
// keys that vanish between two attempts.

package integration

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

var dataScenarios = []scenario{
	{name: "poisoned-counters", run: poisonedCounters, poisons: true},
	{name: "sequence-removed-after-applied", run: sequenceRemoved(faultproxy.CutAfter), unknown: true, stays: true},
	{name: "sequence-removed-unapplied", run: sequenceRemoved(faultproxy.CutBefore), unknown: true, stays: true},
	{name: "one-server-two-names", partitions: 2, change: twoNames, run: atRequests(anyAction)},
}

// poisons are what a counter must not hold. With some of them INCRBY works.
var poisons = []string{"text", "", "-1000000", "1 2", "-9223372036854775808", "1.5", foreign}

// poisonedCounters makes counters of the busiest keys hold no count, before and
// while they are in use. All others must not notice.
func poisonedCounters(f *fleet) {
	f.run(0.7)
	first := f.clock.epoch()
	planted := map[string]string{}
	f.during(window, func() {
		for i := range min(8, len(f.keys)/4) {
			for ahead := range int64(8) {
				counter := fmt.Sprintf("%s:%s:%d", keyPrefix, f.keys[2*i], first+ahead)
				text := poisons[f.rng.IntN(len(poisons))]
				for _, b := range f.servers {
					b.do(f, "DEL", counter)
					if text == foreign {
						b.do(f, "RPUSH", counter, "x")
					} else {
						b.do(f, "SET", counter, text)
					}
				}
				planted[counter] = text
			}
		}
	}, func() {})
	f.run(2)
	f.calm()
	var units uint64
	for _, m := range f.nodes {
		units += m.Stats().Dropped.Poisoned
	}
	if units == 0 {
		f.Error("no unit met a poisoned counter")
	}
	for counter, text := range planted {
		for _, b := range f.servers {
			got, err := redis.String(b.admin.Do("GET", counter))
			switch {
			case text == foreign && err == nil,
				(text == "text" || text == "" || text == "1.5" || text == "1 2") && (err != nil || got != text):
				f.Errorf("%s held %q and holds %q, %v", counter, text, got, err)
			}
		}
		// Where INCRBY works, what the counter holds is no measure any more.
		for _, m := range f.nodes {
			m.witnesses[0].poison(counter)
		}
	}
}

// poison leaves a counter out of the comparison.
func (w *witness) poison(counter string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.poisoned[counter]; !ok {
		w.poisoned[counter] = 0
	}
}

// sequenceRemoved lets some batches' first attempts fail, and removes the sequence
// key before the second: then nobody can know, the batch is dropped as unknown,
// and nothing is sent twice.
func sequenceRemoved(first faultproxy.Action) func(*fleet) {
	return func(f *fleet) {
		f.run(0.7)
		removed := make([]int, len(f.servers))
		for i, b := range f.servers {
			rng := rand.New(rand.NewPCG(f.rng.Uint64(), f.rng.Uint64()))
			remove := b.Conn()
			attempted := map[string]bool{} // batches, by sequence key and number
			b.proxy.Handle(func(r faultproxy.Request) faultproxy.Action {
				sequence, number := batchOf(r)
				id := sequence + " " + strconv.FormatUint(number, 10)
				if number < 2 || attempted[id] {
					if attempted[id] {
						_, _ = remove.Do("DEL", sequence)
					}
					return faultproxy.Pass
				}
				if rng.IntN(10) > 0 {
					return faultproxy.Pass
				}
				attempted[id] = true
				removed[i]++
				return first
			})
		}
		f.run(2)
		f.calm() // ends the hooks
		want, orphans := 0, 0
		for _, n := range removed {
			want += n
		}
		for _, m := range f.nodes {
			for _, w := range m.witnesses {
				w.mu.Lock()
				orphans += w.orphans
				w.mu.Unlock()
			}
		}
		// The hooks end at any moment: a batch may then find its key.
		if want == 0 || orphans > want || orphans < want-len(f.nodes)*len(f.servers) {
			f.Errorf("%d batches lost their sequence key, %d were answered so", want, orphans)
		}
	}
}

// batchOf returns the sequence key and the number of a batch; 0 if the request is
// none.
func batchOf(r faultproxy.Request) (sequence string, number uint64) {
	if !r.Is("EVALSHA") && !r.Is("EVAL") || len(r.Args) < 4 {
		return "", 0
	}
	keys, err := strconv.Atoi(string(r.Args[2]))
	if err != nil || len(r.Args) <= 3+keys {
		return "", 0
	}
	sequence = strings.Clone(string(r.Args[3]))
	number, _ = strconv.ParseUint(string(r.Args[3+keys]), 10, 64)
	return sequence, number
}

// twoNames makes both partitions one server, each behind its own proxy.
func twoNames(f *fleet) {
	p, err := faultproxy.Listen(f.servers[0].Addr())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.Close)
	f.servers[1] = &backend{Server: f.servers[0].Server, proxy: p, admin: f.servers[0].admin, clock: f.clock}
}
