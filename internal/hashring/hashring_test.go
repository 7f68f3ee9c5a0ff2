package hashring

// This file checks what a ring promises: even shares, one owner for a set of
// names, and few moves.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// families are name patterns as they occur: names that differ in one digit are
// the hard case for a hash.
var families = []string{
	"redis-%d.example:6379/0",
	"redis-%02d.example:6379/0",
	"10.0.0.%d:6379/0",
	"%d.0.0.1:6379/0",
	"127.0.0.1:637%d/0",
	"localhost:6379/%d",
	"limits.x%d.cache.example.com:6379/0",
	"/run/redis/%d.sock/0",
	"shard%d",
	"%d", // point 1 of "10" must not be point 11 of "0"
}

func family(pattern string, from, to int) []string {
	var names []string
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf(pattern, i))
	}
	return names
}

func mustNew(tb testing.TB, names []string) *Ring {
	tb.Helper()
	r, err := New(names)
	if err != nil {
		tb.Fatalf("New(%q): %v", names, err)
	}
	return r
}

// keys returns n entity keys of the shapes that services use.
func keys(n int) []string {
	out := make([]string, 0, n)
	for i := 0; len(out) < n; i++ {
		out = append(out, fmt.Sprintf("team_%d", i), fmt.Sprintf("phc_%08x:events", i*2654435761))
	}
	return out[:n]
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		names []string
		want  []string
	}{
		{nil, []string{"no partitions"}},
		{[]string{}, []string{"no partitions"}},
		{[]string{""}, []string{"partition 0 has no name"}},
		{[]string{"a", "", "b"}, []string{"partition 1 has no name"}},
		{[]string{"a", "b", "a"}, []string{`partitions 0 and 2 are both named "a"`}},
		{[]string{"a", "a", "", "b", "b"}, []string{`0 and 1 are both named "a"`, "partition 2 has no name", `3 and 4 are both named "b"`}},
		{family("%d", 0, 1<<16), []string{"65536 partitions"}},
	} {
		r, err := New(row.names)
		if err == nil || r != nil {
			t.Errorf("New(%d names) = %v, %v, want nil and an error", len(row.names), r, err)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("New(%d names): error %q does not say %q", len(row.names), err, want)
			}
		}
	}
}

func TestOnePartitionOwnsAll(t *testing.T) {
	t.Parallel()
	r := mustNew(t, []string{"only"})
	if r.slots != nil {
		t.Error("a ring of one name has slots; it needs no hashing")
	}
	for _, key := range append(keys(1000), "", "\x00", strings.Repeat("k", 1<<20)) {
		if got := r.Owner(key); got != 0 {
			t.Fatalf("Owner(%.20q) = %d, want 0", key, got)
		}
	}
}

// TestGrowingFleet grows each family from one name to sixteen. At every size the
// shares must be even; at every step the new name must get its share, and no slot
// may move to another.
func TestGrowingFleet(t *testing.T) {
	t.Parallel()
	for _, pattern := range families {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			var before []string // owner of each slot, by name
			for n := 1; n <= 16; n++ {
				names := family(pattern, 0, n)
				slices.Reverse(names) // the new one first, so that the others' indices shift
				after, counts := owners(mustNew(t, names), names)
				checkEven(t, "slots", names, counts)
				for slot := range before {
					if was, is := before[slot], after[slot]; was != is && is != names[0] {
						t.Fatalf("adding %q: slot %d moved from %q to %q", names[0], slot, was, is)
					}
				}
				before = after
			}
		})
	}
}

// owners returns the owner of each slot, and how many slots each name owns.
func owners(r *Ring, names []string) (owner []string, counts []int) {
	owner, counts = make([]string, 1<<slotBits), make([]int, len(names))
	for slot := range owner {
		i := 0
		if r.slots != nil {
			i = int(r.slots[slot])
		}
		owner[slot] = names[i]
		counts[i]++
	}
	return owner, counts
}

func TestSharesOfKeysAreEven(t *testing.T) {
	t.Parallel()
	all := keys(200_000)
	for _, pattern := range families {
		names := family(pattern, 0, 5)
		r := mustNew(t, names)
		counts := make([]int, len(names))
		for _, key := range all {
			counts[r.Owner(key)]++
		}
		checkEven(t, "keys", names, counts)
	}
}

// checkEven reports counts that are more than 15 % from their mean.
func checkEven(t *testing.T, what string, names []string, counts []int) {
	t.Helper()
	total := 0
	for _, n := range counts {
		total += n
	}
	mean := float64(total) / float64(len(counts))
	for i, got := range counts {
		if off := float64(got)/mean - 1; off < -0.15 || off > 0.15 {
			t.Errorf("%d names: %q has %d of %d %s, %+.1f %% off the mean, want within 15 %%", len(names), names[i], got, total, what, 100*off)
		}
	}
}

func TestOwnerDependsOnTheSetOnly(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for _, pattern := range families[:5] {
		names := family(pattern, 0, 2+random.IntN(15))
		want := mustNew(t, names)
		for range 2 {
			shuffled := slices.Clone(names)
			random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			got := mustNew(t, shuffled)
			for slot := range want.slots {
				if a, b := names[want.slots[slot]], shuffled[got.slots[slot]]; a != b {
					t.Fatalf("seed %d: slot %d belongs to %q by %q and to %q by %q", seed, slot, a, names, b, shuffled)
				}
			}
		}
	}
}

// Two names with a point in common: whichever is added last would own it.
func TestOwnerDoesNotDependOnTheOrderWherePointsCoincide(t *testing.T) {
	t.Parallel()
	// Among 120,000 points of 32 bits, one or two pairs coincide on average.
	const names = 60
	points := map[uint32]string{}
	var pairs [][2]string
	for _, name := range family("n%d", 0, names) {
		for i := range replicas {
			p := position(fmt.Appendf(nil, "%d#%s", i, name))
			if other, ok := points[p]; ok && other != name {
				pairs = append(pairs, [2]string{other, name})
			}
			points[p] = name
		}
	}
	if len(pairs) == 0 {
		t.Fatalf("no two of %d names have a point in common: the test tests nothing", names)
	}
	for _, pair := range pairs {
		ab, ba := mustNew(t, []string{pair[0], pair[1]}), mustNew(t, []string{pair[1], pair[0]})
		for slot := range ab.slots {
			if ab.slots[slot] == ba.slots[slot] {
				t.Fatalf("%q: slot %d changes its owner with the order of names", pair, slot)
			}
		}
	}
}

func TestMoreThanSixteenPartitions(t *testing.T) {
	t.Parallel()
	const n = 260 // more than a byte holds
	r := mustNew(t, family("redis-%d.example:6379/0", 0, n))
	owned := make([]bool, n)
	for _, key := range keys(100_000) {
		owned[r.Owner(key)] = true
	}
	if i := slices.Index(owned, false); i >= 0 {
		t.Errorf("partition %d of %d owns none of 100,000 keys", i, n)
	}
}

func TestOwnerDoesNotAllocate(t *testing.T) {
	r := mustNew(t, family("redis-%d.example:6379/0", 0, 4))
	long := strings.Repeat("k", 512)
	if got := testing.AllocsPerRun(100, func() { r.Owner(""); r.Owner("team_42"); r.Owner(long) }); got != 0 {
		t.Errorf("Owner: %v allocations, want 0", got)
	}
}

func BenchmarkOwner(b *testing.B) {
	all := keys(1024)
	for _, n := range []int{1, 2, 16} {
		b.Run(fmt.Sprintf("partitions=%d", n), func(b *testing.B) {
			r := mustNew(b, family("redis-%d.example:6379/0", 0, n))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r.Owner(all[i&1023])
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{2, 16} {
		b.Run(fmt.Sprintf("partitions=%d", n), func(b *testing.B) {
			names := family("redis-%d.example:6379/0", 0, n)
			for b.Loop() {
				mustNew(b, names)
			}
		})
	}
}
