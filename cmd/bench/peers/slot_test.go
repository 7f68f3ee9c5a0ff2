package main

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestDealGivesEachCoreKeysOfItsOwn(t *testing.T) {
	t.Parallel()
	keys := makeKeys(1000)
	for _, k := range kinds {
		hands := k.deal(keys)
		want := 1
		if k.perCore {
			want = runtime.GOMAXPROCS(0)
		}
		if len(hands) != want {
			t.Errorf("%s: %d hands, want %d", k.name, len(hands), want)
		}
		seen := map[string]bool{}
		for _, hand := range hands {
			if len(hand) != 1000/want {
				t.Errorf("%s: a hand of %d keys, want %d", k.name, len(hand), 1000/want)
			}
			for _, key := range hand {
				if seen[key] && !k.hot {
					t.Errorf("%s: %s is dealt twice", k.name, key)
				}
				seen[key] = true
			}
		}
		if k.hot && len(seen) != 1 {
			t.Errorf("%s: %d different keys, want 1", k.name, len(seen))
		}
	}
}

func TestMakeKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, key := range makeKeys(500) {
		if len(key) != 17 {
			t.Errorf("key %q has %d bytes, want 17", key, len(key))
		}
		seen[key] = true
	}
	if len(seen) != 500 {
		t.Errorf("%d different keys, want 500", len(seen))
	}
}

func TestRotatedPutsEachFirstOnce(t *testing.T) {
	t.Parallel()
	contestants := []contestant{{name: "a"}, {name: "b"}, {name: "c"}}
	for round, want := range []string{"abc", "bca", "cab", "abc"} {
		got := ""
		for _, c := range rotated(contestants, round) {
			got += c.name
		}
		if got != want {
			t.Errorf("round %d: order %s, want %s", round, got, want)
		}
	}
}

// fakes returns a contestant that counts what it is asked and refuses from the
// limit-th decision on; 0 never.
func fakes(limit int) (c contestant, asked map[string]int, settled, closed *int) {
	var mu sync.Mutex
	total := 0
	asked, settled, closed = map[string]int{}, new(int), new(int)
	return contestant{name: "fake", open: func(int) (*instance, error) {
		return &instance{
			check: func(key string) bool {
				mu.Lock()
				defer mu.Unlock()
				total++
				asked[key]++
				return limit == 0 || total < limit
			},
			settle: func() error { *settled++; return nil },
			close:  func() error { *closed++; return nil },
		}, nil
	}}, asked, settled, closed
}

func TestTakeMeetsEveryKeyAlike(t *testing.T) {
	t.Parallel()
	keys := makeKeys(64)
	c, asked, settled, closed := fakes(0)
	r, err := take(c, kinds[0], keys, time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, key := range keys {
		if asked[key] != asked[keys[0]] {
			t.Errorf("%s was met %d times, %s %d times", key, asked[key], keys[0], asked[keys[0]])
		}
		total += asked[key]
	}
	if r.ops != total-2*len(keys) || *settled != 2 || *closed != 1 {
		t.Errorf("%d decisions measured of %d, settled %d times, closed %d times", r.ops, total, *settled, *closed)
	}
}

func TestTakeFailsIfTheContestantRefuses(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 100, 64*2 + 5} {
		c, _, _, _ := fakes(limit)
		if _, err := take(c, kinds[0], makeKeys(64), time.Second/10); !errors.Is(err, errRefused) {
			t.Errorf("refusing from decision %d on: error %v, want errRefused", limit, err)
		}
	}
}

func TestModelIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "",
		"processor\t: 0\nmodel name\t: X 1\n": "X 1",
		"model\t: 85\n":                       "",
	} {
		if got := modelIn(text); got != want {
			t.Errorf("modelIn(%q) = %q, want %q", text, got, want)
		}
	}
}
