package main

// This file is the loop: one contestant at work for a short time.

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A kind of run says who meets which keys.
type kind struct {
	name    string
	hot     bool // one key only
	perCore bool // a goroutine on each core, each with keys of its own unless hot
}

// The kinds of run, in the order in which a round makes them.
var kinds = []kind{
	{name: "Serial"},
	{name: "Parallel", perCore: true},
	{name: "HotSerial", hot: true},
	{name: "HotParallel", hot: true, perCore: true},
}

// A reading is what one slot measured.
type reading struct {
	ops    int
	ns     float64 // of time, per decision: elapsed / decisions, all goroutines together
	cpu    float64 // ns of processor time of the whole process, per decision
	bytes  float64 // allocated, per decision
	allocs float64 // per decision
}

// makeKeys returns n keys of 17 bytes in an order that is not that of their memory.
func makeKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("team_%012d", i)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

// deal returns the keys of each goroutine.
func (k kind) deal(keys []string) [][]string {
	goroutines := 1
	if k.perCore {
		goroutines = runtime.GOMAXPROCS(0)
	}
	hands := make([][]string, goroutines)
	share := len(keys) / goroutines
	for i := range hands {
		hands[i] = keys[i*share : (i+1)*share]
		if k.hot {
			hands[i] = make([]string, share)
			for j := range hands[i] {
				hands[i][j] = keys[0]
			}
		}
	}
	return hands
}

// take measures a contestant, warm, for a time.
func take(c contestant, k kind, keys []string, slot time.Duration) (r reading, err error) {
	hands := k.deal(keys)
	i, err := c.open(len(keys))
	if err != nil {
		return r, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := warm(i, hands); err != nil {
		return r, fmt.Errorf("%s: %w", c.name, err)
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := processorTime(), time.Now()
	r.ops, err = repeat(i.check, hands, begin.Add(slot))
	elapsed := time.Since(begin)
	cpu = processorTime() - cpu
	runtime.ReadMemStats(&after)
	if i.close != nil {
		if closed := i.close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", c.name, err)
	}
	n := float64(r.ops)
	r.ns, r.cpu = float64(elapsed.Nanoseconds())/n, float64(cpu.Nanoseconds())/n
	r.bytes = float64(after.TotalAlloc-before.TotalAlloc) / n
	r.allocs = float64(after.Mallocs-before.Mallocs) / n
	return r, nil
}

// warm lets an instance meet the keys, settle, and meet them again. It meets copies:
// a service takes its keys from requests, so a key that is looked up is never the
// very string that was stored, and has to be compared byte by byte.
func warm(i *instance, hands [][]string) error {
	for range 2 {
		for _, keys := range hands {
			for _, key := range keys {
				if !i.check(strings.Clone(key)) {
					return errRefused
				}
			}
		}
		if i.settle != nil {
			if err := i.settle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeat decides about the keys of each hand, over and over, until the end, and
// returns how many decisions that were. It looks at the time once per thousand, and
// decides about some even if the end is past.
func repeat(check func(string) bool, hands [][]string, end time.Time) (ops int, err error) {
	counts := make([]int, len(hands))
	refused := make([]bool, len(hands))
	var group sync.WaitGroup
	for i, keys := range hands {
		group.Go(func() { counts[i], refused[i] = repeatOne(check, keys, end) })
	}
	group.Wait()
	for i, n := range counts {
		ops += n
		if refused[i] {
			return ops, errRefused
		}
	}
	return ops, nil
}

// chunk is how many decisions are made between two looks at the time.
const chunk = 1000

func repeatOne(check func(string) bool, keys []string, end time.Time) (ops int, refused bool) {
	allowed := 0
	for from := 0; ops == 0 || time.Now().Before(end); {
		to := min(from+chunk, len(keys))
		for _, key := range keys[from:to] {
			if check(key) {
				allowed++
			}
		}
		ops += to - from
		if from = to; from == len(keys) {
			from = 0
		}
	}
	return ops, allowed != ops
}
