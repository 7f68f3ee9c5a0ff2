// This file breaks what a batch and its reply rely on: that it comes once, that the
// store keeps what it acknowledged, that numbers are sane, that replies come in time.

package integration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

var wireScenarios = []scenario{
	{name: "resent-below", run: resentBelow},
	{name: "rolled-back", run: told(rolledBack), unknown: true, destroys: true},
	{name: "counters-evicted", run: countersEvicted, destroys: true},
	{name: "absurd-cost", run: absurdCost},
	{name: "slow-round-trip", run: slowRoundTrip, keys: 30}, // one batch, for a window is but four round trips
}

// resentBelow has a proxy send batches twice, and answer by the second reply; now and
// then it loses that, too.
func resentBelow(f *fleet) {
	f.run(0.7)
	for _, share := range []float64{0.3, 1} {
		f.during(brief, func() {
			for _, b := range f.servers {
				b.strike(f.rng, share, func(_ time.Duration, rng *rand.Rand) faultproxy.Action {
					if rng.IntN(8) == 0 {
						return faultproxy.CutAfter
					}
					return faultproxy.Twice
				})
			}
		}, func() {
			for _, b := range f.servers {
				b.proxy.Handle(nil)
			}
		})
		f.run(0.7)
	}
	again := 0
	for _, m := range f.nodes {
		for _, w := range m.witnesses {
			w.mu.Lock()
			again += w.resent
			w.mu.Unlock()
		}
	}
	if again == 0 {
		f.Error("no first attempt was answered as a duplicate: nothing was sent twice")
	}
}

// told checks besides that the nodes noticed that a server forgot what it had
// acknowledged.
func told(run func(*fleet)) func(*fleet) {
	return func(f *fleet) {
		run(f)
		f.calm()
		var forgotten uint64
		for _, m := range f.nodes {
			for _, p := range m.Stats().Partitions {
				forgotten += p.Forgotten
			}
		}
		if forgotten == 0 {
			f.Error("no node said that a server forgot batches")
		}
	}
}

// rolledBack restarts a server on a snapshot that is older than what it acknowledged.
func rolledBack(f *fleet) {
	f.run(0.7)
	for range 2 {
		b := f.any()
		b.do(f, "SAVE")
		f.run(0.5)
		f.during(brief/4, func() {
			b.Kill()
			f.lost(b)
		}, func() {
			b.Restart()
			b.admin = b.Conn()
		})
		f.run(0.7)
	}
	f.struck()
}

// countersEvicted takes counters away, and leaves the sequence keys.
func countersEvicted(f *fleet) {
	f.run(0.7)
	for range 3 {
		f.during(brief, func() {
			for _, b := range f.servers {
				names, err := redis.Strings(b.admin.Do("KEYS", keyPrefix+":team:*"))
				if err != nil {
					f.Fatal(err)
				}
				for _, name := range names {
					if f.rng.IntN(2) == 0 {
						b.do(f, "DEL", name)
					}
				}
				f.lost(b)
			}
		}, func() {})
		f.run(0.7)
	}
	f.calm()
	var lost uint64
	for _, m := range f.nodes {
		lost += m.Stats().LostTotals
	}
	if lost == 0 {
		f.Error("no node said that counters are gone")
	}
}

// absurdCost has callers ask for more than a counter can hold. Every node limits the
// key from then on, for as long as its epochs can be read.
func absurdCost(f *fleet) {
	f.run(0.7)
	for round, cost := range []uint64{store.MaxUnits, math.MaxUint64, store.MaxUnits - 1} {
		key := fmt.Sprintf("team:absurd:%d", round)
		f.during(ticks, func() {
			for i, m := range f.present() {
				m.aside(func() { // first contacts, which pass
					if i == round%2 {
						m.offer(key, cost)
					} else {
						m.offer(key, 1)
					}
				})
			}
		}, func() {})
		f.calm()
		for i, m := range f.present() {
			if i%2 == 0 {
				continue // its small table may have forgotten the key
			}
			m.offer(key, 1) // what it writes is answered by the total
			if err := m.Sync(f.Context()); err != nil {
				f.Errorf("%s: %v", m.name, err)
			}
			if d := m.Peek(key); d.Basis() != ratelimit.BasisFirstContact && d.Verdict() != ratelimit.VerdictLimited {
				f.Errorf("%s: %s is %v at level %v after %d units", m.name, key, d.Verdict(), d.Level(), cost)
			}
		}
		for _, m := range f.present() {
			m.resume()
		}
		f.run(0.5)
	}
	for _, m := range f.nodes {
		if units := m.Stats().Dropped.Poisoned; units > 0 {
			f.Errorf("%s: %d units poisoned", m.name, units)
		}
	}
}

// number is that of a batch; 0 if the request is none.
func number(r faultproxy.Request) uint64 {
	_, n := batchOf(r)
	return n
}

// slowRoundTrip holds every reply to a batch back for longer than the timeout, for
// windows: all that is counted is delivered meanwhile. Connections are made as fast as
// before, for this suite gives them no more time than a reply.
func slowRoundTrip(f *fleet) {
	f.run(0.7)
	f.during(2*window, func() {
		for _, b := range f.servers {
			late := faultproxy.Delay(b.clock.real(reply + reply/2))
			b.proxy.Handle(func(r faultproxy.Request) faultproxy.Action {
				if number(r) > 0 {
					return late
				}
				return faultproxy.Pass
			})
		}
		f.clock.sleep(window)
		for _, m := range f.present() {
			if m == f.leaver {
				continue
			}
			before := m.Stats().Delivered
			f.until(m.name+" delivers", func() bool { return m.Stats().Delivered > before })
		}
	}, func() {
		for _, b := range f.servers {
			b.proxy.Handle(nil)
		}
	})
	f.run(0.7)
	f.struck()
}
