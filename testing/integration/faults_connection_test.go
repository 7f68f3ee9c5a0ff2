// This file breaks connections and requests, between a fleet and healthy servers.

package integration

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/testing/integration/faultproxy"
)

var connectionScenarios = []scenario{
	{name: "reset-before-request", run: atRequests(always(faultproxy.CutBefore))},
	{name: "reset-inside-request", run: atRequests(always(faultproxy.CutInside))},
	{name: "reset-after-applied", run: repeated(atRequests(always(faultproxy.CutAfter)))},
	{name: "reset-inside-reply", run: repeated(atRequests(always(faultproxy.CutReply)))},
	{name: "reply-late", run: repeated(atRequests(func(late time.Duration, _ *rand.Rand) faultproxy.Action { return faultproxy.Delay(late) }))},
	{name: "request-late", run: repeated(atRequests(func(late time.Duration, _ *rand.Rand) faultproxy.Action { return faultproxy.Hold(late) }))},
	{name: "no-answer", run: atRequests(always(faultproxy.Hang))},
	{name: "proxy-error-unapplied", run: atRequests(always(faultproxy.Answer("ERR upstream timeout")))},
	{name: "proxy-error-applied", run: repeated(atRequests(always(faultproxy.AnswerAfter("ERR upstream timeout"))))},
	{name: "all-at-once", run: atRequests(anyAction)},
	{name: "refused", run: refused},
	{name: "client-kill", run: clientKill},
}

// A choice says what to do with a request. late is a time beyond the timeout, and
// sometimes beyond the next attempts'.
type choice func(late time.Duration, rng *rand.Rand) faultproxy.Action

func always(a faultproxy.Action) choice {
	return func(time.Duration, *rand.Rand) faultproxy.Action { return a }
}

// anyAction is one of all that a proxy can do.
func anyAction(late time.Duration, rng *rand.Rand) faultproxy.Action {
	return []faultproxy.Action{
		faultproxy.CutBefore, faultproxy.CutInside, faultproxy.CutAfter, faultproxy.CutReply, faultproxy.Hang,
		faultproxy.Delay(late), faultproxy.Hold(late),
		faultproxy.Answer("ERR upstream timeout"), faultproxy.AnswerAfter("ERR upstream timeout"),
	}[rng.IntN(9)]
}

// atRequests breaks single requests, then half of them, then all, for a while
// each, on one or all partitions.
func atRequests(action choice) func(*fleet) {
	return func(f *fleet) {
		f.run(0.7)
		for _, share := range []float64{0.1, 0.5, 1} {
			servers := f.servers
			if f.rng.IntN(2) == 0 {
				servers = []*backend{f.any()}
			}
			f.during(brief, func() {
				for _, b := range servers {
					b.strike(f.rng, share, action)
				}
			}, func() {
				for _, b := range servers {
					b.proxy.Handle(nil)
				}
			})
			f.run(0.7)
		}
		f.struck()
	}
}

// strike has the proxy do that with a share of all requests.
func (b *backend) strike(seeds *rand.Rand, share float64, action choice) {
	rng := rand.New(rand.NewPCG(seeds.Uint64(), seeds.Uint64()))
	b.proxy.Handle(func(faultproxy.Request) faultproxy.Action {
		if rng.Float64() >= share {
			return faultproxy.Pass
		}
		late := reply + time.Duration(rng.Int64N(int64(4*reply)))
		return action(b.clock.real(late), rng)
	})
}

// struck checks that the fault was felt: some node's attempt failed.
func (f *fleet) struck() {
	f.Helper()
	for _, m := range f.nodes {
		for _, w := range m.witnesses {
			w.mu.Lock()
			n := len(w.failures)
			w.mu.Unlock()
			if n > 0 {
				return
			}
		}
	}
	f.Error("no attempt failed: the fault did not happen")
}

// repeated checks besides that batches were sent again which had been applied: so
// it was the number that kept them from counting twice.
func repeated(run func(*fleet)) func(*fleet) {
	return func(f *fleet) {
		run(f)
		again := 0
		for _, m := range f.nodes {
			for _, w := range m.witnesses {
				w.mu.Lock()
				again += w.again
				w.mu.Unlock()
			}
		}
		if again == 0 {
			f.Error("no batch was sent again after it had been applied")
		}
	}
}

// refused takes the listener away: connections are reset, and new ones refused.
func refused(f *fleet) {
	f.run(0.7)
	for range 3 {
		b := f.any()
		f.during(brief, b.proxy.Down, func() { up(f.T, b) })
		f.run(0.7)
	}
	f.struck()
}

// up brings a proxy back.
func up(t testing.TB, b *backend) {
	t.Helper()
	if err := b.proxy.Up(); err != nil {
		t.Fatal(err)
	}
}

// clientKill has the server itself end all connections, again and again.
func clientKill(f *fleet) {
	f.run(0.7)
	for range 3 {
		f.during(brief, func() {
			for range 5 {
				for _, b := range f.servers {
					b.killClients(f)
				}
				f.clock.sleep(ticks / 2)
			}
		}, func() {})
		f.run(0.7)
	}
	f.struck()
}

// killClients ends every connection to the server but the test's own.
func (b *backend) killClients(f *fleet) {
	if _, err := redis.Int(b.admin.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")); err != nil {
		f.Fatal(err)
	}
}
