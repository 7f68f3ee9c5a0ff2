// This file compares, when a scenario is over, what callers counted, what nodes
// say, what they were told, and what Redis holds.

package integration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// A tally is what became of units that should all have arrived once.
type tally struct {
	scenarios       int
	lost, doubled   uint64
	unknown, stale  uint64
	counted, stayed uint64 // all units; those that Redis holds
	returned, twice uint64 // units taken back; those of them that were taken back already
	granted, late   uint64 // units granted by stores; those of them that nobody waited for
}

func (t *tally) add(o tally) {
	t.scenarios += o.scenarios
	t.lost += o.lost
	t.doubled += o.doubled
	t.unknown += o.unknown
	t.stale += o.stale
	t.counted += o.counted
	t.stayed += o.stayed
	t.returned += o.returned
	t.twice += o.twice
	t.granted += o.granted
	t.late += o.late
}

func (t tally) String() string {
	return fmt.Sprintf("scenarios=%d lost=%d doubled=%d twice=%d unknown=%d stale=%d returned=%d granted=%d late=%d",
		t.scenarios, t.lost, t.doubled, t.twice, t.unknown, t.stale, t.returned, t.granted, t.late)
}

// finish brings the fleet to rest, compares, closes it and compares again.
func (f *fleet) finish(s *scenario) tally {
	f.Helper()
	f.calm()
	for _, m := range f.present() {
		m.endIn(10 * time.Second)
		if m.closed != nil {
			f.Errorf("%s: Close with nothing left: %v", m.name, m.closed)
		}
	}
	for _, m := range f.nodes {
		if m.dead { // its memory is looked at, as no one could in life
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_ = m.Close(ctx) // nothing can be delivered
			cancel()
		}
	}
	for _, b := range f.servers {
		b.proxy.Settle()
	}
	sum := tally{scenarios: 1}
	acked, since, doubtful, poisoned := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	taken, takenSince, takenPerhaps := map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for _, m := range f.nodes {
		a := m.audit(&sum, s)
		for counter, units := range a.acked {
			acked[counter] += units
		}
		for counter, units := range a.since {
			since[counter] += units
		}
		for counter, units := range a.doubtful {
			doubtful[counter] += units
		}
		for counter := range a.poisoned {
			poisoned[counter] = true
		}
		for counter, units := range a.back.taken {
			taken[counter] += units
		}
		for counter, units := range a.back.takenSince {
			takenSince[counter] += units
		}
		for counter, units := range a.back.takenPerhaps {
			takenPerhaps[counter] += units
		}
	}
	held := f.held()
	for counter := range held {
		if _, known := acked[counter]; !known {
			acked[counter] = 0
		}
	}
	for counter, units := range acked {
		if poisoned[counter] {
			continue // the scenario that did that looks itself
		}
		least, most, back := units, units+doubtful[counter], taken[counter]
		if s.destroys {
			least, back = since[counter], takenSince[counter]
		}
		least -= min(least, back+takenPerhaps[counter])
		most -= min(most, back) // a store that was put back to an earlier state holds again what had been taken
		got := held[counter]
		sum.stayed += got
		if got < least {
			sum.lost += least - got
			f.Errorf("LOST: %s holds %d, want %d at least of %d acknowledged, %d taken back", counter, got, least, units, taken[counter])
		}
		if got > most {
			sum.doubled += got - most
			f.Errorf("DOUBLED: %s holds %d, acknowledged were %d and %d are in doubt, %d taken back", counter, got, units, doubtful[counter], taken[counter])
		}
	}
	return sum
}

// audit compares what the node's callers counted with what the node says and what
// it was told.
func (m *member) audit(sum *tally, s *scenario) account {
	t := m.fleet
	t.Helper()
	all := newAccount()
	acked, poisoned := map[string]uint64{}, map[string]uint64{} // by key
	var toldAcked, toldPoisoned, toldTaken uint64
	for _, w := range m.witnesses {
		a := w.account()
		for counter, units := range a.acked {
			all.acked[counter] += units
			acked[keyOf(counter)] += units
			toldAcked += units
		}
		for counter, units := range a.poisoned {
			all.poisoned[counter] += units
			poisoned[keyOf(counter)] += units
			toldPoisoned += units
		}
		for counter, units := range a.since {
			all.since[counter] += units
		}
		for counter, units := range a.doubtful {
			all.doubtful[counter] += units
		}
		for counter, units := range a.back.taken {
			all.back.taken[counter] += units
			toldTaken += units
		}
		for counter, units := range a.back.takenSince {
			all.back.takenSince[counter] += units
		}
		for counter, units := range a.back.takenPerhaps {
			all.back.takenPerhaps[counter] += units
		}
	}
	m.late(sum)
	m.returned(sum, &all)
	st := m.Stats()
	var counted, missing uint64
	for key, units := range m.counted {
		counted += units
		if told := acked[key] + poisoned[key]; told > units {
			sum.doubled += told - units
			t.Errorf("DOUBLED: %s: %q: callers counted %d, acknowledged were %d", m.name, key, units, told)
		} else {
			missing += units - told
		}
	}
	for key, units := range acked {
		if _, known := m.counted[key]; !known && units > 0 {
			t.Errorf("DOUBLED: %s: %q was delivered and never counted", m.name, key)
		}
	}
	// What a batch asked for that had no answer when its node ended is counted as unknown.
	ended := m.dead || m.closed != nil
	vain := st.Counted - counted
	if vain != 0 && (!ended || vain > st.Dropped.Unknown) {
		t.Errorf("%s: callers counted %d, Stats says %d", m.name, counted, st.Counted)
	}
	// Every node is closed by now: what is neither delivered nor dropped is nowhere.
	if gone := st.Counted - st.Returned.Taken - st.Delivered - st.Dropped.Total(); gone != 0 {
		sum.lost += gone
		t.Errorf("LOST: %s: counted is not delivered + dropped: %+v", m.name, st)
	}
	// A reply after Close is none to the limiter: late units, delivered, poisoned or
	// taken back, are among the unknown.
	late, latePoisoned := int64(toldAcked-st.Delivered-toldTaken), int64(toldPoisoned-st.Dropped.Poisoned)
	if late+int64(st.Returned.Unknown) < 0 || latePoisoned < 0 || late+latePoisoned > int64(st.Dropped.Unknown) {
		t.Errorf("%s: told of %d units delivered, %d taken back and %d poisoned, Stats says %d left and %d poisoned, %+v, unknown %d",
			m.name, toldAcked, toldTaken, toldPoisoned, st.Delivered, st.Dropped.Poisoned, st.Returned, st.Dropped.Unknown)
	}
	if want := st.Undelivered + st.Dropped.Total() + st.Returned.Taken - toldTaken - st.Dropped.Poisoned - uint64(late) - uint64(latePoisoned) - vain; missing != want {
		t.Errorf("%s: of what callers counted %d units were not delivered, Stats says %d: %+v", m.name, missing, want, st)
	}
	m.permitted(s)
	sum.unknown += st.Dropped.Unknown
	sum.stale += st.Dropped.Stale
	sum.counted += st.Counted
	return all
}

// permitted checks that the node dropped nothing but what the scenario may cost.
func (m *member) permitted(s *scenario) {
	t, d := m.fleet, m.Stats().Dropped
	t.Helper()
	if st := m.Stats(); !s.destroys && !s.unknown && !s.poisons {
		for _, p := range st.Partitions {
			if p.Forgotten > 0 || st.LostTotals > 0 {
				t.Errorf("%s says that %s forgot %d batches and %d counters; nothing was", m.name, p.Name, p.Forgotten, st.LostTotals)
			}
		}
	}
	ended := m.dead || m.closed != nil // what Close reports was compared
	for _, row := range []struct {
		cause string
		units uint64
		may   bool
	}{
		{"stale", d.Stale, s.stale || m.dead},
		{"poisoned", d.Poisoned, s.poisons},
		{"overflow", d.Overflow, false},
		{"closed", d.Closed, ended},
		{"unknown", d.Unknown, s.unknown || ended},
	} {
		if row.units > 0 && !row.may {
			t.Errorf("%s: %d units dropped as %s", m.name, row.units, row.cause)
		}
	}
}

// keyOf is the entity key in the name of a counter.
func keyOf(counter string) string {
	key := strings.TrimPrefix(counter, keyPrefix+":")
	return key[:strings.LastIndexByte(key, ':')]
}

// held returns what the servers hold, by counter. A counter that is none is left
// out.
func (f *fleet) held() map[string]uint64 {
	f.Helper()
	held := map[string]uint64{}
	seen := map[string]bool{}
	for _, b := range f.servers {
		if seen[b.Addr()] {
			continue
		}
		seen[b.Addr()] = true
		conn := b.Conn()
		names, err := redis.Strings(conn.Do("KEYS", keyPrefix+":team:*"))
		if err != nil {
			f.Fatal(err)
		}
		for len(names) > 0 {
			some := names[:min(len(names), 1000)]
			names = names[len(some):]
			values, err := redis.Values(conn.Do("MGET", redis.Args{}.AddFlat(some)...))
			if err != nil {
				f.Fatal(err)
			}
			for i, value := range values {
				if units, err := redis.Uint64(value, nil); err == nil {
					held[some[i]] += units
				}
			}
		}
	}
	return held
}
