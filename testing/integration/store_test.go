// This file holds the script and its twin to each other: random timelines of
// batches and mishaps, the same replies, the same contents.

package integration

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// embeddedStart is when a frozen embedded server starts.
var embeddedStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// TestStoresAgreeAsTimePasses compares the memory store with the script on the
// embedded server, whose time the timeline moves.
func TestStoresAgreeAsTimePasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := redistest.Start(t, redistest.Only(redistest.Embedded), redistest.Frozen())
		d := &differential{
			twin: newMemory(embeddedStart), script: newServer(t, s), prefix: "p",
			// The embedded server reads these as numbers; Redis does not.
			texts: []string{"x", "", "-9", "-1", "0", "5", "9007199254740990", "9007199254740991", "9007199254740992", "1.5", foreign},
			moves: true,
		}
		d.run(rt)
	})
}

// TestStoresAgreeOnAServer compares the memory store with the script on the best
// server at hand, in real time: no key of this test lives shorter than a minute.
func TestStoresAgreeOnAServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Frozen()) // if embedded: its steps of time are coarse
	script, prefix := newServer(t, s), s.Prefix()
	rapid.Check(t, func(rt *rapid.T) {
		s.Flush(prefix) // what the timeline before left
		began := time.Now()
		d := &differential{
			twin: newMemory(began), script: script, prefix: prefix,
			texts: []string{"x", "", "-9", "-1", "0", "5", "9007199254740990", "9007199254740991", "9007199254740992", "1.5", foreign},
			began: began,
		}
		if s.Real() {
			d.texts = append(d.texts, "007", "+7", " 7", "-0", "9223372036854775807", "9223372036854775808", "99999999999999999999999", "1e3", "0x10")
		}
		d.run(rt)
	})
}

// A differential runs one timeline on two stores.
type differential struct {
	twin, script subject
	prefix       string
	texts        []string  // what a key is poisoned with
	moves        bool      // time moves, and is compared
	began        time.Time // otherwise: when the timeline began

	last    [3]*store.Batch // of each identity
	numbers [3]uint64
	acked   [3]uint64
}

// keys are all keys of a timeline.
func (d *differential) keys() (counters, sequences, all []string) {
	for i := range 8 {
		counters = append(counters, fmt.Sprintf("%s:team_%d:%d", d.prefix, i/2, i%2))
	}
	for i := range d.last {
		sequences = append(sequences, fmt.Sprintf("%s:id%d:seq", d.prefix, i))
	}
	all = append(append([]string{d.prefix + ":window"}, sequences...), counters...)
	return counters, sequences, all
}

func (d *differential) run(rt *rapid.T) {
	counters, sequences, all := d.keys()
	for step := range rapid.IntRange(1, 40).Draw(rt, "steps") {
		switch rapid.IntRange(0, 15).Draw(rt, "action") {
		case 0:
			d.tamper(rapid.SampledFrom(sequences).Draw(rt, "sequence"), "")
		case 1:
			text := rapid.SampledFrom([]string{
				"x", "", "3", "3 7", "3 8", "3 7 1:1:0", "3 7 1:1:0 2:2:0 99:3:0", "3 7 0:6:0 1:4:0", "3 7 1:5:2 2:5:0 3:7:3 4:7:4294967297",
				"2 7 1:3:0 1:7:1", "3 7 1:8:0", "3 7 1:1", "3 7 ", "1 7", "40 7", "9007199254740992 7", foreign,
			}).Draw(rt, "text")
			d.tamper(rapid.SampledFrom(sequences).Draw(rt, "sequence"), "="+text)
		case 2:
			d.tamper(rapid.SampledFrom(counters).Draw(rt, "counter"), "")
		case 3, 4:
			d.tamper(rapid.SampledFrom(counters).Draw(rt, "counter"), "="+rapid.SampledFrom(d.texts).Draw(rt, "text"))
		case 5:
			d.tamper(d.prefix+":window", rapid.SampledFrom([]string{"", "=x", "=30000", "=60000", "=" + foreign}).Draw(rt, "window"))
		case 6, 7:
			if d.moves {
				// Never the millisecond at which a key expires: there the embedded
				// server is a millisecond early.
				span := time.Duration(rapid.SampledFrom([]int{10, 500, 1000, 1500, 60_000, 200_000, 4_000_000}).Draw(rt, "ms")) * time.Millisecond
				d.twin.advance(span)
				d.script.advance(span)
			}
		default:
			d.batch(rt, step, counters, sequences)
		}
		d.compareContents(rt, step, all)
	}
}

// tamper removes the key, or makes it hold what follows a '='.
func (d *differential) tamper(key, what string) {
	for _, s := range []subject{d.twin, d.script} {
		if what == "" {
			s.remove(key)
		} else {
			s.set(key, what[1:])
		}
	}
}

// batch sends a new batch of one identity, or its last one again.
func (d *differential) batch(rt *rapid.T, step int, counters, sequences []string) {
	id := rapid.IntRange(0, len(d.last)-1).Draw(rt, "identity")
	b := d.last[id]
	if again := rapid.IntRange(0, 2).Draw(rt, "again") == 0; again && b != nil {
		copied := *b
		copied.Retry = rapid.IntRange(0, 3).Draw(rt, "flag") > 0
		switch rapid.IntRange(0, 7).Draw(rt, "whose") {
		case 0:
			copied.Number = max(1, copied.Number-1)
		case 1:
			copied.Nonce = rapid.SampledFrom(nonces).Draw(rt, "nonce")
		case 2:
			copied.Acked = uint64(rapid.IntRange(0, int(copied.Number)-1).Draw(rt, "acked"))
		}
		b = &copied
	} else if rapid.IntRange(0, 9).Draw(rt, "look") == 0 {
		b = d.draw(rt, counters, sequences[id], 0)
		b.Writes, b.Reads = nil, slices.Concat(b.Reads, sequences, []string{d.prefix + ":window"})
	} else {
		d.numbers[id] += uint64(rapid.SampledFrom([]int{1, 1, 1, 1, 2}).Draw(rt, "ahead"))
		b = d.draw(rt, counters, sequences[id], d.numbers[id])
		b.Acked = d.acked[id]
		d.last[id] = b
	}
	want, err := d.twin.apply(b)
	if err != nil {
		rt.Fatalf("step %d: the twin: %v", step, err)
	}
	if b.Number > 0 && (want.Outcome == store.Applied || want.Outcome == store.Duplicate) {
		d.acked[id] = b.Number
	}
	got, err := d.script.apply(b)
	if err != nil {
		rt.Fatalf("step %d: the script: %v", step, err)
	}
	if !d.moves {
		if drift := time.Until(time.UnixMicro(got.Time)).Abs(); drift > time.Minute && d.script.(*server).redis.Real() {
			rt.Fatalf("step %d: the server's clock is off by %v", step, drift)
		}
		got.Time = want.Time
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		rt.Fatalf("step %d: batch %+v\nreply (-twin +script):\n%s", step, b, diff)
	}
}

// draw makes a batch of some of the counters, none twice.
func (d *differential) draw(rt *rapid.T, counters []string, sequence string, number uint64) *store.Batch {
	b := &store.Batch{
		Sequence: sequence, Number: number, Nonce: rapid.SampledFrom(nonces).Draw(rt, "nonce"), SequenceTTL: time.Hour + 5*time.Millisecond,
		WindowKey: d.prefix + ":window", Window: time.Duration(rapid.SampledFrom([]int{60, 60, 60, 30}).Draw(rt, "window")) * time.Second,
	}
	shortest := 60_005
	if d.moves {
		shortest = 1_005
	}
	b.TTL = time.Duration(rapid.SampledFrom([]int{shortest, shortest + 500, 120_005}).Draw(rt, "ttl")) * time.Millisecond
	// Steps of 10 ms: with them no key expires at a millisecond that time stops at.
	b.Spread = time.Duration(rapid.SampledFrom([]int{0, 640, 700, 6_400}).Draw(rt, "spread")) * time.Millisecond
	order := make([]int, len(counters))
	for i := range order {
		order[i] = i
	}
	for _, i := range rapid.Permutation(order).Draw(rt, "order") {
		key := counters[i]
		switch rapid.IntRange(0, 4).Draw(rt, "use") {
		case 0:
			b.Reads = append(b.Reads, key)
		case 1, 2:
			delta := rapid.SampledFrom([]int64{
				1, 1, 1, 3, 1000, 1 << 40, store.MaxUnits - 1, store.MaxUnits, -1, -2, -2000, -store.MaxUnits + 1, -store.MaxUnits,
			}).Draw(rt, "delta")
			b.Writes = append(b.Writes, store.Write{Key: key, Delta: delta})
		case 3:
			if w := d.condition(rt, key, counters); number > 0 {
				b.Writes = append(b.Writes, w)
			}
		}
	}
	return b
}

// nonces are those of all batches: close ones, that a float mixes up.
var nonces = []uint64{7, 7, 8, 1 << 53, 1<<53 + 1, math.MaxUint64, math.MaxUint64 - 1}

// condition makes a conditional write of the key.
func (d *differential) condition(rt *rapid.T, key string, counters []string) store.Write {
	c := &store.Condition{
		Limit:    rapid.SampledFrom([]uint64{0, 1, 5, 20, 3000, 1 << 41, store.MaxUnits, math.MaxUint64}).Draw(rt, "limit"),
		Previous: rapid.SampledFrom(append([]string{""}, counters...)).Draw(rt, "previous"),
		Weight:   rapid.SampledFrom([]uint32{0, 1, 3, store.FullWeight / 3, store.FullWeight - 1, store.FullWeight}).Draw(rt, "weight"),
	}
	amounts := rapid.SampledFrom([]uint64{1, 1, 2, 7, 1000, 1 << 40, store.MaxUnits})
	c.Amounts = rapid.SliceOfN(amounts, 0, rapid.SampledFrom([]int{3, 70}).Draw(rt, "most")).Draw(rt, "amounts")
	delta := rapid.SampledFrom([]int64{0, 0, 0, 1, 4, -1, -9, store.MaxUnits, -store.MaxUnits}).Draw(rt, "delta")
	return store.Write{Key: key, Delta: delta, Condition: c}
}

// compareContents compares every key's value and its time to live.
func (d *differential) compareContents(rt *rapid.T, step int, all []string) {
	want, got := d.twin.contents(all), d.script.contents(all)
	for _, key := range all {
		w, inTwin := want[key]
		g, inScript := got[key]
		if inTwin != inScript || w.Text != g.Text || !d.sameTTL(w.TTL, g.TTL) {
			rt.Fatalf("step %d: %s: the twin holds %+v (%v), the script %+v (%v)", step, key, w, inTwin, g, inScript)
		}
	}
}

// sameTTL compares times to live, to the millisecond where time stands still.
func (d *differential) sameTTL(twin, script time.Duration) bool {
	if d.moves || twin < 0 || script < 0 {
		return twin == script
	}
	return script <= twin+time.Millisecond && script >= twin-time.Since(d.began)-time.Millisecond
}
