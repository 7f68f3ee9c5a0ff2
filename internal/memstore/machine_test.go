// This file runs limiters' batches through random histories (repetitions, replies that
// are lost, batches sent twice below the limiter, clones, losses and rollbacks of the
// store) and keeps books of its own beside the store's.

package memstore_test

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestRandomHistoriesOfBatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, history)
}

// FuzzHistoriesOfBatches is the same, led by coverage.
func FuzzHistoriesOfBatches(f *testing.F) { f.Fuzz(rapid.MakeFuzz(history)) }

// history is one.
func history(rt *rapid.T) {
	m := &machine{Store: memstore.New(func() int64 { return 1 }), held: map[string]int64{}}
	for i := range m.limiters {
		m.limiters[i] = &sender{sequence: fmt.Sprint("seq", i)}
	}
	rt.Repeat(map[string]func(*rapid.T){
		"":        m.invariants,
		"send":    m.send,
		"again":   m.again,
		"clone":   m.clone,
		"look":    m.look,
		"snap":    m.snap,
		"recall":  m.recall,
		"flush":   m.flush,
		"orphan":  m.orphan,
		"give up": m.giveUp,
	})
}

// A machine is a store, those who send to it, and what it must hold.
type machine struct {
	*memstore.Store
	limiters [3]*sender
	held     map[string]int64 // by counter
	snapshot *snapshot
}

// A sender is one limiter's side: its batch without an answer, and its numbers.
type sender struct {
	sequence      string
	number, acked uint64
	open          *store.Batch // the last batch
	told          *store.Reply // what became of it; nil: the store does not hold it
}

// A snapshot is what the store held, and what it then had told each sender of its batch.
type snapshot struct {
	texts map[string]string
	held  map[string]int64
	open  [3]*store.Batch
	told  [3]*store.Reply
}

var counters = []string{"a", "b", "c", "d"}

func (m *machine) someone(rt *rapid.T) *sender {
	return rapid.SampledFrom(m.limiters[:]).Draw(rt, "limiter")
}

// send makes a new batch and sends it once, or more often; its reply may be lost.
func (m *machine) send(rt *rapid.T) {
	s := m.someone(rt)
	s.number++
	s.open, s.told = &store.Batch{
		Sequence: s.sequence, Number: s.number, Nonce: rapid.Uint64().Draw(rt, "nonce"), Acked: s.acked, SequenceTTL: time.Hour,
		WindowKey: "window", Window: time.Minute, TTL: time.Hour,
	}, nil
	for _, key := range rapid.Permutation(counters).Draw(rt, "keys")[:rapid.IntRange(0, 4).Draw(rt, "writes")] {
		w := store.Write{Key: key, Delta: rapid.Int64Range(-30, 30).Draw(rt, "delta")}
		if rapid.Bool().Draw(rt, "conditional") {
			w.Condition = &store.Condition{
				Amounts: rapid.SliceOfN(rapid.Uint64Range(1, 9), 0, 40).Draw(rt, "amounts"), Limit: rapid.Uint64Range(0, 90).Draw(rt, "limit"),
				Previous: rapid.SampledFrom(append([]string{""}, counters...)).Draw(rt, "previous"),
				Weight:   rapid.SampledFrom([]uint32{0, 1, 1 << 18, store.FullWeight - 1, store.FullWeight}).Draw(rt, "weight"),
			}
			if w.Condition.Previous == key {
				w.Condition.Previous = ""
			}
		} else if w.Delta == 0 {
			w.Delta = 1
		}
		s.open.Writes = append(s.open.Writes, w)
	}
	m.attempt(rt, s, store.Applied)
}

// holds returns the number that the store holds of a sender, and whether it does.
func (m *machine) holds(s *sender) (number uint64, ok bool) {
	text, ok := m.Text(s.sequence)
	if ok {
		if _, err := fmt.Sscan(text, &number); err != nil {
			panic(err)
		}
	}
	return number, ok
}

// again sends the last batch once more, told that it may have been applied or not. A
// store that was rolled back applies it again.
func (m *machine) again(rt *rapid.T) {
	s := m.someone(rt)
	if _, ok := m.holds(s); s.open == nil || !ok {
		return
	}
	s.open.Retry = rapid.Bool().Draw(rt, "retry")
	if s.told == nil {
		m.attempt(rt, s, store.Applied)
		return
	}
	m.attempt(rt, s, store.Duplicate)
}

// attempt applies the open batch and checks the reply against the books.
func (m *machine) attempt(rt *rapid.T, s *sender, want store.Outcome) {
	expected := s.told
	if want == store.Applied {
		expected = m.expect(s)
	}
	var r store.Reply
	for range rapid.IntRange(1, 3).Draw(rt, "times below") {
		if err := m.Apply(context.Background(), s.open, &r); err != nil {
			rt.Fatal(err)
		}
		if r.Outcome != want || r.Forgotten != expected.Forgotten {
			rt.Fatalf("batch %+v: outcome %d, forgotten %t, want %d, %t", s.open, r.Outcome, r.Forgotten, want, expected.Forgotten)
		}
		want = store.Duplicate
		for i, w := range r.Writes {
			e := expected.Writes[i]
			if w.Status != store.Written || w.Taken != e.Taken || !reflect.DeepEqual(w.Granted, e.Granted) || w.Total != m.held[s.open.Writes[i].Key] {
				rt.Fatalf("batch %+v: write %d: %+v, want %+v and a total of %d", s.open, i, w, e, m.held[s.open.Writes[i].Key])
			}
		}
	}
	s.told = expected
	if rapid.IntRange(0, 3).Draw(rt, "lost") > 0 {
		s.acked = s.open.Number
	}
}

// expect is what must become of a batch, by arithmetic in large integers; it changes
// the books.
func (m *machine) expect(s *sender) *store.Reply {
	number, _ := m.holds(s)
	r := &store.Reply{Forgotten: number < s.open.Acked}
	for _, w := range s.open.Writes {
		result := store.WriteResult{}
		if w.Delta < 0 {
			result.Taken = uint64(min(-w.Delta, m.held[w.Key]))
			m.held[w.Key] -= int64(result.Taken)
		} else {
			m.held[w.Key] += w.Delta
		}
		if c := w.Condition; c != nil {
			result.Granted = make([]bool, len(c.Amounts))
			weighed := new(big.Int)
			if c.Previous != "" {
				weighed.Mul(big.NewInt(m.held[c.Previous]), big.NewInt(int64(c.Weight)))
			}
			for i, amount := range c.Amounts {
				// previous × weight + (counter + amount) × 2^20 ≤ limit × 2^20
				sum := new(big.Int).Lsh(big.NewInt(m.held[w.Key]+int64(amount)), 20)
				sum.Add(sum, weighed)
				if sum.Cmp(new(big.Int).Lsh(big.NewInt(int64(c.Limit)), 20)) <= 0 {
					result.Granted[i] = true
					m.held[w.Key] += int64(amount)
				}
			}
		}
		r.Writes = append(r.Writes, result)
	}
	return r
}

// clone sends a batch under a number that its owner's last batch has, or a lower one.
func (m *machine) clone(rt *rapid.T) {
	s := m.someone(rt)
	if s.told == nil {
		return
	}
	b := *s.open
	b.Number -= min(b.Number-1, rapid.Uint64Range(0, 2).Draw(rt, "older"))
	b.Nonce ^= rapid.SampledFrom([]uint64{1, 1 << 11, 1 << 63}).Draw(rt, "other")
	b.Retry = rapid.Bool().Draw(rt, "retry")
	m.noEffect(rt, &b, store.Stranger, false)
}

// noEffect sends a batch that must change nothing.
func (m *machine) noEffect(rt *rapid.T, b *store.Batch, want store.Outcome, forgotten bool) {
	keys, before := m.Keys(), m.texts()
	var r store.Reply
	if err := m.Apply(context.Background(), b, &r); err != nil || r.Outcome != want || r.Forgotten != forgotten {
		rt.Fatalf("batch %+v: outcome %d, forgotten %t, %v; want %d, %t", b, r.Outcome, r.Forgotten, err, want, forgotten)
	}
	for i, w := range r.Writes {
		if w.Status != store.Skipped || w.Taken != 0 || slices.Contains(w.Granted, true) || w.Total != m.held[b.Writes[i].Key] {
			rt.Fatalf("batch %+v: write %d: %+v", b, i, w)
		}
	}
	if !slices.Equal(keys, m.Keys()) || !maps.Equal(before, m.texts()) {
		rt.Fatalf("batch %+v changed %v to %v", b, before, m.texts())
	}
}

func (m *machine) look(rt *rapid.T) {
	m.noEffect(rt, &store.Batch{Sequence: m.someone(rt).sequence, WindowKey: "window", Acked: 9, Retry: true, Reads: counters}, store.Looked, false)
}

func (m *machine) texts() map[string]string {
	texts := map[string]string{}
	for _, key := range m.Keys() {
		texts[key], _ = m.Text(key)
	}
	return texts
}

// snap and recall are a rollback: a restart on an older file, or a failover to a
// replica that was behind.
func (m *machine) snap(*rapid.T) {
	m.snapshot = &snapshot{texts: m.texts(), held: maps.Clone(m.held)}
	for i, s := range m.limiters {
		m.snapshot.open[i], m.snapshot.told[i] = s.open, s.told
	}
}

func (m *machine) recall(rt *rapid.T) {
	if m.snapshot == nil {
		m.snap(rt)
	}
	m.FlushAll()
	for key, text := range m.snapshot.texts {
		m.Set(key, text)
	}
	m.held = maps.Clone(m.snapshot.held)
	for i, s := range m.limiters {
		if s.told = nil; s.open == m.snapshot.open[i] {
			s.told = m.snapshot.told[i]
		}
	}
}

func (m *machine) flush(*rapid.T) {
	m.FlushAll()
	m.held = map[string]int64{}
	for _, s := range m.limiters {
		s.told = nil
	}
}

// orphan repeats a batch whose sequence key is gone.
func (m *machine) orphan(rt *rapid.T) {
	s := m.someone(rt)
	if _, ok := m.holds(s); s.open == nil || ok || s.open.Number < 2 {
		return
	}
	b := *s.open
	b.Retry = true
	m.noEffect(rt, &b, store.Orphan, b.Acked > 0)
}

// giveUp passes over some numbers, as a limiter does with batches that it drops.
func (m *machine) giveUp(rt *rapid.T) {
	m.someone(rt).number += rapid.Uint64Range(1, 3).Draw(rt, "numbers")
}

func (m *machine) invariants(rt *rapid.T) {
	for _, key := range counters {
		if got, ok := m.Get(key); got != m.held[key] || got < 0 || ok && got == 0 && m.held[key] != 0 {
			rt.Fatalf("%s holds %d, want %d", key, got, m.held[key])
		}
	}
}
