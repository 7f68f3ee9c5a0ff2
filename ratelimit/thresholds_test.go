// Tests of which threshold applies: overrides, the resolver, the global one.

package ratelimit

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestThresholdIsTheOverrideElseTheResolversElseTheGlobal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	resolver := func(key string) (uint64, bool) {
		kind, _, found := strings.Cut(key, ":")
		return map[string]uint64{"gold": 5000, "none": 0, "exact": 1}[kind], found && kind != "other"
	}
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"exact": 7, "exact:1": 8, "zero": 0, "": 9} }, WithResolver(resolver))
	for _, c := range []struct {
		key    string
		want   uint64
		custom bool
	}{
		{"exact", 7, true},
		{"exact:1", 8, true}, // before the resolver
		{"exact:2", 1, true},
		{"zero", 0, true},
		{"", 9, true},
		{"gold:a", 5000, true},
		{"none:a", 0, true},
		{"other:a", 100, false},
		{"plain", 100, false},
		{"Exact", 100, false},
	} {
		for _, units := range []uint64{0, 1, 0} { // unknown, unknown, known
			if d := n.Check(c.key, units); d.Threshold() != c.want || d.Custom() != c.custom {
				t.Errorf("%q: threshold %d, custom %v; want %d, %v", c.key, d.Threshold(), d.Custom(), c.want, c.custom)
			}
		}
		if got := n.IsCustomKey(c.key); got != c.custom {
			t.Errorf("IsCustomKey(%q) = %v", c.key, got)
		}
		d := n.CheckCustom(c.key, 0)
		if got := d.Verdict() != VerdictNotApplicable; got != c.custom || d.Threshold() != c.want || d.Custom() != c.custom {
			t.Errorf("CheckCustom(%q) is %v, threshold %d, custom %v; want %d, %v", c.key, d.Verdict(), d.Threshold(), d.Custom(), c.want, c.custom)
		}
	}
}

func TestOverridesOfLongKeysAreByTheOriginal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	var asked []string
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{long: 5} }, WithResolver(func(key string) (uint64, bool) {
		asked = append(asked, key)
		return 6, true
	}))
	if got := n.Check(long, 1).Threshold(); got != 5 {
		t.Errorf("threshold %d, want 5", got)
	}
	if got := n.Check(long+"y", 1).Threshold(); got != 6 || len(asked) != 1 || asked[0] != long+"y" {
		t.Errorf("threshold %d, the resolver was asked %d times", got, len(asked))
	}
}

func TestCheckCustomDecidesAsCheckDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"k": 10} })
	for i, c := range []struct {
		units uint64
		want  Verdict
		level float64
	}{{4, yes, 4}, {5, yes, 9}, {1, no, 10}, {0, no, 9}} {
		if d := n.CheckCustom("k", c.units); d.Verdict() != c.want || d.Level() != c.level {
			t.Fatalf("check %d: %v at level %v, want %v at %v", i, d.Verdict(), d.Level(), c.want, c.level)
		}
	}
	for range 2 {
		if d := n.Check("k", 0); d.Level() != 9 || d.Threshold() != 10 || !d.Custom() {
			t.Errorf("Check finds level %v of %d, custom %v", d.Level(), d.Threshold(), d.Custom())
		}
	}
}

func TestCheckCustomOfAnotherKeyLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"own": 10} })
	n.Check("known", 42)
	n.Check("own", 1)
	w.clock.Advance(time.Second)
	w.clock.Advance(10 * time.Second)
	n.link.take()
	stats, entries, counts := n.Stats(), n.entries(), n.table.counts()
	for _, key := range []string{"unknown", "known", ""} {
		d := n.CheckCustom(key, 1000)
		if d.Verdict() != VerdictNotApplicable || !d.Allowed() || d.Level() != 0 || d.RetryAfter() != 0 || d.Reset() != 0 {
			t.Errorf("CheckCustom(%q) is %v at level %v, retry after %v, reset in %v", key, d.Verdict(), d.Level(), d.RetryAfter(), d.Reset())
		}
	}
	if diff := cmp.Diff(stats, n.Stats()); diff != "" {
		t.Errorf("the statistics changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(entries, n.entries()); diff != "" {
		t.Errorf("the table changed (-before +after):\n%s", diff)
	}
	if n.table.counts() != counts {
		t.Error("the counts of look-ups changed")
	}
	w.clock.Advance(time.Minute)
	if got := n.link.take(); len(got) != 0 {
		t.Errorf("%d batches were sent", len(got))
	}
}

func TestSetOverridesTakesEffectAtTheNextCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"k": 10} }).alone()
	n.follow([]row{{0, 9, yes, 9}, {0, 1, no, 10}})
	own := map[string]uint64{"k": 20, "new": 3}
	n.SetOverrides(own)
	own["k"] = 1 // it was copied
	n.follow([]row{{0, 1, yes, 10}, {0, 10, no, 20}})
	if d := n.Check("new", 1); d.Threshold() != 3 || !d.Custom() {
		t.Errorf("a new override gives %d", d.Threshold())
	}
	if got := n.Stats().Overrides; got != 2 {
		t.Errorf("%d overrides in force, want 2", got)
	}
	n.SetOverrides(map[string]uint64{"k": 0})
	n.follow([]row{{0, 1, no, 11}, {0, 0, no, 10}})
	n.SetOverrides(nil)
	n.follow([]row{{0, 89, yes, 99}, {0, 1, no, 100}}) // the global threshold
	if d := n.Check("new", 1); d.Threshold() != 100 || d.Custom() || n.IsCustomKey("new") {
		t.Errorf("a removed override gives %d, custom %v", d.Threshold(), d.Custom())
	}
}

func TestSetOverridesAppliesToKeysThatTheResolverKnows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	threshold := uint64(50)
	n := w.node(nil, WithResolver(func(string) (uint64, bool) { return threshold, true }))
	for _, want := range []uint64{50, 40, 30} { // it is asked at every check
		threshold = want
		if got := n.Check("k", 1).Threshold(); got != want {
			t.Errorf("threshold %d, want what the resolver says now, %d", got, want)
		}
	}
	n.SetOverrides(map[string]uint64{"k": 7})
	if got := n.Check("k", 1).Threshold(); got != 7 {
		t.Errorf("threshold %d, want the override's 7", got)
	}
	n.SetOverrides(nil)
	if got := n.Check("k", 1).Threshold(); got != 30 {
		t.Errorf("threshold %d, want the resolver's 30", got)
	}
}

func TestTheResolverIsCalledOnceAndOutsideLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var n *node
	calls := 0
	n = w.node(func(c *Config) { c.CustomKeys = Overrides{"exact": 5} }, WithResolver(func(key string) (uint64, bool) {
		calls++
		if calls > 1 {
			return 0, false // a call from within a call, below
		}
		// Whatever a resolver does with the limiter must not block.
		n.Peek(key)
		n.Check(key+"-other", 1)
		n.SetOverrides(nil)
		n.Forget(key)
		n.Stats()
		return 10, key != "unknown"
	}))
	for name, check := range map[string]func(key string){
		"Check":       func(key string) { n.Check(key, 1) },
		"Peek":        func(key string) { n.Peek(key) },
		"CheckAt":     func(key string) { n.CheckAt(key, 1, start) },
		"CheckCustom": func(key string) { n.CheckCustom(key, 1) },
		"IsCustomKey": func(key string) { n.IsCustomKey(key) },
	} {
		for _, key := range []string{"a", "a", "unknown"} {
			calls = 0
			check(key)
			if calls != 3 { // once, and once for each of the two checks within
				t.Errorf("%s(%q) called the resolver %d times, want once", name, key, calls-2)
			}
		}
		calls = 0
		n.SetOverrides(map[string]uint64{"exact": 5})
		if check("exact"); calls != 0 {
			t.Errorf("%s called the resolver for a key with an override", name)
		}
	}
}

// A check sees the overrides as they were set, all together.
func TestOverridesAreSwappedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	sets := []map[string]uint64{{"k": 1_000_000}, {"k": 2_000_000}}
	n.SetOverrides(sets[0])
	n.Check("k", 1)
	var writer, readers sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		for i := range 2000 {
			n.SetOverrides(sets[i%2])
		}
		close(done)
	})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, d := range []Decision{n.Check("k", 0), n.CheckCustom("k", 0)} {
					if got := d.Threshold(); got != 1_000_000 && got != 2_000_000 || !d.Custom() || d.Verdict() != yes {
						t.Errorf("threshold %d, custom %v, %v", got, d.Custom(), d.Verdict())
						return
					}
				}
			}
		})
	}
	writer.Wait()
	readers.Wait()
	if got := n.Check("k", 0).Threshold(); got != 2_000_000 {
		t.Errorf("in the end the threshold is %d, want that of the last set", got)
	}
}

func TestGenerationsOfOverridesWrapAround(t *testing.T) {
	t.Parallel()
	th := newThresholds(1, nil, nil)
	th.current.Store(&snapshot{generation: 1<<32 - 1})
	th.swap(map[string]uint64{"k": 2})
	if s := th.current.Load(); s.generation == 0 || s.exact["k"] != 2 {
		t.Errorf("after the last generation comes %d", s.generation)
	}
}

// A resolver is given the overrides of the decision: those of a token hold for all of
// its keys, at once when they change, in every kind of check.
func TestAResolverLooksAtTheOverridesInForce(t *testing.T) {
	t.Parallel()
	byToken := func(key string, override func(string) (uint64, bool)) (uint64, bool) {
		token, _, found := strings.Cut(key, ":")
		if !found {
			return 0, false
		}
		return override(token)
	}
	n := newWorld(t).node(func(c *Config) { c.CustomKeys = Overrides{"t1": 5, "t1:exact": 6} },
		WithResolver(func(string) (uint64, bool) { return 1, true }), WithOverridesResolver(byToken))
	expect := func(key string, want uint64, custom bool) {
		t.Helper()
		for name, d := range map[string]Decision{"Check": n.Check(key, 0), "CheckAll": n.CheckAll([]Item{{Key: key}})[0]} {
			if d.Threshold() != want || d.Custom() != custom {
				t.Errorf("%s(%q): threshold %d, custom %t; want %d, %t", name, key, d.Threshold(), d.Custom(), want, custom)
			}
		}
	}
	global := n.Config().GlobalThreshold
	expect("t1", 5, true)
	expect("t1:get", 5, true)
	expect("t1:exact", 6, true)
	expect("t2:get", global, false)
	n.SetOverrides(map[string]uint64{"t2": 9})
	expect("t1:get", global, false)
	expect("t2:get", 9, true)
	n.SetOverrides(nil)
	expect("t2:get", global, false)
}

func TestTheChecksumTellsOverridesApart(t *testing.T) {
	t.Parallel()
	sets := []map[string]uint64{
		nil,
		{"": 0},
		{"": 1},
		{"a": 0},
		{"a": 1},
		{"b": 1},
		{"a": 1, "b": 2},
		{"a": 2, "b": 1},
		{"a": 1, "b": 1},
		{"ab": 1},
		{"a\x01\x00\x00\x00\x00\x00\x00\x00": 1},
		{"a": 1 << 56},
		{"a": 1, "": 1},
	}
	seen := map[uint64]int{}
	for i, set := range sets {
		sum := checksum(set)
		if float64(sum) != float64(sum+1)-1 || sum > 1<<53-1 {
			t.Errorf("set %d: %d is no number that a gauge holds exactly", i, sum)
		}
		if before, twice := seen[sum]; twice {
			t.Errorf("sets %d and %d have one checksum", before, i)
		}
		seen[sum] = i
		if again := checksum(maps.Clone(set)); again != sum {
			t.Errorf("set %d: %d, then %d", i, sum, again)
		}
	}
	if checksum(nil) != 0 || checksum(map[string]uint64{}) != 0 {
		t.Error("no overrides have a checksum that is not 0")
	}
}
