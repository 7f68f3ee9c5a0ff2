package main

// This file measures decisions that ask Redis each time, beside redis_rate's on the same
// server: how many a second of the server's processor makes, and how long one takes.

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

// callers is how many goroutines ask at once.
const callers = 64

// askings are the figures, by how many keys are asked about.
var askings = []struct {
	name string
	keys int
}{{"checkfleet", 10_000}, {"checkfleet_64", 64}, {"checkfleet_one", 1}}

// An asked is what one slot of asking came to.
type asked struct {
	perCPU   float64 // decisions per second of Redis' processor time
	p50, p99 time.Duration
}

// measureAsking makes the rounds of asking on the Redis at an address, prints each, and
// returns the figures: decisions per second of Redis' processor time, ours / redis_rate's.
func measureAsking(o *options, address string, w io.Writer) ([]figure, error) {
	client := redis.NewClient(&redis.Options{Addr: address, PoolSize: callers})
	defer client.Close()
	config := ratelimit.DefaultConfig()
	config.GlobalReadTimeout = time.Minute // what is late is measured, too
	config.RedisKeyPrefix = "peers-fleet"
	l, err := newOursAt("redis://"+address, config)
	if err != nil {
		return nil, err
	}
	defer l.Close(context.Background())
	fleet := func(key string) bool {
		d, err := l.CheckFleet(context.Background(), key, 1)
		return err == nil && d.Allowed()
	}
	rate := openRedisRate(client).check

	var found []figure
	for _, a := range askings {
		keys := makeKeys(min(a.keys, max(1, o.keys)))
		var quotients []float64
		var all [2][]asked
		for round := range o.rounds {
			both := [2]asked{}
			for turn := range 2 {
				i := (round + turn) % 2
				check, name := fleet, ours
				if i == 1 {
					check, name = rate, "redis_rate"
				}
				if both[i], err = ask(client, check, keys, o.slot); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				all[i] = append(all[i], both[i])
			}
			quotients = append(quotients, both[0].perCPU/both[1].perCPU)
		}
		for i, name := range []string{ours, "redis_rate"} {
			fmt.Fprintf(w, "# %s, %d keys, %d callers: %s: %.0f decisions per second of Redis' processor time, p50 %v, p99 %v (medians of the rounds)\n",
				a.name, len(keys), callers, name,
				median(values(all[i], func(r asked) float64 { return r.perCPU })),
				time.Duration(median(values(all[i], func(r asked) float64 { return float64(r.p50) }))).Round(time.Microsecond),
				time.Duration(median(values(all[i], func(r asked) float64 { return float64(r.p99) }))).Round(time.Microsecond))
		}
		found = append(found, figure{name: a.name, ratio: median(quotients), cpu: median(quotients)})
	}
	return found, nil
}

// measureFleet returns the figures of decisions that ask Redis; none without one.
func measureFleet(o *options, address string, w io.Writer) ([]figure, error) {
	if address == "" {
		return nil, nil
	}
	found, err := measureAsking(o, address, w)
	if err != nil {
		return nil, err
	}
	alone, err := measureAlone(o, address, w)
	if err != nil {
		return nil, err
	}
	return append(found, alone), nil
}

func values(list []asked, of func(asked) float64) (out []float64) {
	for _, r := range list {
		out = append(out, of(r))
	}
	return out
}

// ask has callers decide about random keys for as long as a slot.
func ask(client *redis.Client, check func(string) bool, keys []string, slot time.Duration) (r asked, err error) {
	for range 2 * callers { // connections, and the script
		check(keys[0])
	}
	before, err := usedCPU(client)
	if err != nil {
		return r, err
	}
	var running sync.WaitGroup
	var refused atomic.Bool
	took := make([][]time.Duration, callers)
	began := time.Now()
	for i := range callers {
		running.Go(func() {
			for n := i; time.Since(began) < slot || len(took[i]) == 0; n += 7919 {
				start := time.Now()
				if !check(keys[n%len(keys)]) {
					refused.Store(true)
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	running.Wait()
	after, err := usedCPU(client)
	if err != nil {
		return r, err
	}
	if refused.Load() {
		return r, errRefused
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return asked{
		perCPU: float64(len(all)) / max(1e-6, after-before),
		p50:    all[len(all)/2], p99: all[len(all)*99/100],
	}, nil
}

// usedCPU is the processor time that the server used, in seconds.
func usedCPU(client *redis.Client) (seconds float64, err error) {
	text, err := client.Info(context.Background(), "cpu").Result()
	if err != nil {
		return 0, err
	}
	found := 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		part, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %s: %w", name, err)
		}
		seconds += part
		found++
	}
	if found != 2 {
		return 0, fmt.Errorf("INFO cpu names no processor time: %q", text)
	}
	return seconds, nil
}
