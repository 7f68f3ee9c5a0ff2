package main

// This file measures a lone caller of the fleet beside a tick.

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit"
)

// tickEntities is how many entities the tick beside a lone caller syncs.
const tickEntities = 20_000

// measureAlone returns p99 of a lone call while a tick is under way / (the longest script
// + a round trip).
func measureAlone(o *options, address string, w io.Writer) (f figure, err error) {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: address})
	defer client.Close()
	config := ratelimit.DefaultConfig()
	config.GlobalReadTimeout = time.Minute
	config.RedisKeyPrefix = "peers-alone"
	l, err := newOursAt("redis://"+address, config)
	if err != nil {
		return f, err
	}
	defer l.Close(ctx)
	entities := makeKeys(min(tickEntities, 2*o.keys))
	var took []time.Duration
	for round := range o.rounds + 1 { // in the first one entities are new
		if round == 1 {
			if err := forgetScripts(client); err != nil {
				return f, err
			}
			took = nil
		}
		for _, key := range entities {
			l.Check(key, 1)
		}
		ticked := make(chan error)
		go func() { ticked <- l.Sync(ctx) }()
		for over := false; !over; {
			start := time.Now()
			if d, err := l.CheckFleet(ctx, "alone", 1); err != nil || !d.Allowed() {
				return f, fmt.Errorf("%w: %v", errRefused, err)
			}
			took = append(took, time.Since(start))
			select {
			case err := <-ticked:
				if err != nil {
					return f, err
				}
				over = true
			default:
			}
		}
	}
	script, err := longestScript(client)
	if err != nil {
		return f, err
	}
	trip, err := roundTrip(client)
	if err != nil {
		return f, err
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	fmt.Fprintf(w, "# fleet_alone: %d calls beside ticks of %d entities: p50 %v, p99 %v; the longest script took %v, a round trip %v\n",
		len(took), len(entities), took[len(took)/2].Round(time.Microsecond), p99.Round(time.Microsecond), script, trip)
	ratio := float64(p99) / float64(script+trip)
	return figure{name: "fleet_alone", ratio: ratio, cpu: ratio}, nil
}

// forgetScripts empties the server's log of slow commands, and has it log all from now on.
func forgetScripts(client *redis.Client) error {
	if err := client.ConfigSet(context.Background(), "slowlog-log-slower-than", "0").Err(); err != nil {
		return err
	}
	if err := client.ConfigSet(context.Background(), "slowlog-max-len", "10000").Err(); err != nil {
		return err
	}
	return client.Do(context.Background(), "SLOWLOG", "RESET").Err()
}

// longestScript is how long the longest script held the server.
func longestScript(client *redis.Client) (longest time.Duration, err error) {
	entries, err := client.SlowLogGet(context.Background(), 10_000).Result()
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if len(e.Args) > 0 && (e.Args[0] == "EVALSHA" || e.Args[0] == "EVAL") {
			longest = max(longest, e.Duration)
		}
	}
	if longest == 0 {
		return 0, fmt.Errorf("the server logged no script")
	}
	return longest, nil
}

// roundTrip is the median of what a PING takes.
func roundTrip(client *redis.Client) (time.Duration, error) {
	var took []time.Duration
	for range 200 {
		start := time.Now()
		if err := client.Ping(context.Background()).Err(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
