// Command consumer reads a stream of events, as from Kafka, and strips those of teams
// that send too many instead of dropping them: the event is kept, its properties,
// which are what costs, are not.
//
//	go run ./docs/examples/consumer
//
// It counts what it strips too (Config.CountLimited): a team that sends three times
// its limit is not let through for a third of the time, it is stripped until it sends
// less. It runs for five seconds, on a stream it makes up.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// An event is one message of the stream.
type event struct {
	team       string
	time       time.Time // at which it occurred
	properties map[string]string
}

func main() {
	lim, err := ratelimit.New(config())
	if err != nil {
		log.Fatal(err)
	}
	consumed := consume(lim, stream(5*time.Second))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := lim.Close(ctx); err != nil {
		log.Print(err)
	}

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "team\tlimit per second\tevents kept whole\tstripped")
	for _, team := range slices.Sorted(maps.Keys(consumed)) {
		c := consumed[team]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", team, c.limit, c.whole, c.stripped)
	}
	w.Flush()
}

// config allows each team 100 events a second.
func config() ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.WindowInterval = time.Second
	cfg.CustomKeys = ratelimit.Overrides{"big": 1000}
	cfg.CountLimited = true
	cfg.RedisURLs = []string{"memory://"} // the consumers of a group share a Redis
	return cfg
}

// A tally is what became of one team's events.
type tally struct{ limit, whole, stripped uint64 }

// consume handles batches until there are no more. A batch is committed only when
// all of it was handled, so no event is lost; one that is read again after a crash is
// counted again.
func consume(lim *ratelimit.Limiter, batches <-chan []event) map[string]*tally {
	consumed := map[string]*tally{}
	for batch := range batches {
		for i := range batch {
			e := &batch[i]
			t := consumed[e.team]
			if t == nil {
				t = &tally{}
				consumed[e.team] = t
			}
			// An event counts in the window in which it occurred: a consumer that
			// catches up does not limit today's traffic for yesterday's.
			d := lim.CheckAt(e.team, 1, e.time)
			t.limit = d.Threshold()
			if d.Allowed() {
				t.whole++
			} else {
				t.stripped++
				e.properties = nil
			}
		}
		write(batch)
		commit(batch)
	}
	return consumed
}

// write and commit stand for the database and for the stream's offsets.
func write([]event)  {}
func commit([]event) {}

// stream makes up events for d: of a team that sends half of its limit, of one that
// sends three times its limit, and of one with a limit of its own.
func stream(d time.Duration) <-chan []event {
	batches := make(chan []event)
	go func() {
		defer close(batches)
		const every = 20 * time.Millisecond
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for range d / every {
			batches <- batchOf(<-ticker.C)
		}
	}()
	return batches
}

// batchOf makes up the events of 20 ms.
func batchOf(now time.Time) (batch []event) {
	for team, n := range map[string]int{"calm": 1, "noisy": 6, "big": 10} {
		for range n {
			batch = append(batch, event{team: team, time: now, properties: map[string]string{"page": "/pricing"}})
		}
	}
	return batch
}
