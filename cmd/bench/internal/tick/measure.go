package tick

// This file measures the ticks of one size: ours and the baselines' in turn.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/internal/redisurl"
)

// ours is the library's place in a run's list of syncers; the baselines follow.
const ours = "limiters"

// syncers are the syncers in the order of their prefixes.
var syncers = [3]string{ours, baselineEvery, baselineTiered}

// ticksPerTurn is how many ticks one syncer makes before it is another's turn.
const ticksPerTurn = 10

// A cost is what ticks took, all together.
type cost struct {
	ticks          int
	redis, node    time.Duration // processor time
	elapsed        time.Duration
	sent, received uint64 // bytes
	trips          uint64
	allocs         uint64 // objects
}

// A race is the syncers of one size.
type race struct {
	o       *options
	info    redis.Conn       // for INFO, uncounted
	servers *backend.Servers // the run's own, to read back and clean
	syncers [3]syncer
	costs   [3]cost
	prefix  [3]string
	next    [3]int // tick that the syncer makes next
}

// measure measures one size. The load is steady: a window of it comes first.
func measure(ctx context.Context, o *options, target redisurl.Target, size int) (r result, err error) {
	t, err := newRace(o, target, size)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.warm(); err != nil {
		return r, err
	}
	if err := t.race(ctx); err != nil {
		return r, err
	}
	if err := t.agree(size); err != nil {
		return r, err
	}
	r = result{entities: size, costs: t.costs}
	r.limited = t.syncers[0].(*tickedLimiter).limiter.Stats().Limited
	return r, t.manners(ctx, target, size, &r)
}

func newRace(o *options, target redisurl.Target, size int) (t *race, err error) {
	t = &race{o: o}
	if t.servers, err = backend.NewServers([]redisurl.Target{target}); err != nil {
		return nil, err
	}
	if t.info, err = t.servers.Connect(target); err != nil {
		return nil, errors.Join(err, t.close())
	}
	start := time.Now().Truncate(o.window)
	names, run := backend.KeyNames(size), backend.RandomName()
	for i, name := range syncers {
		t.prefix[i] = fmt.Sprintf("@hanzo/bench-%s%d", run, i) // as long as the default prefix
		if name == ours {
			t.syncers[i], err = newTickedLimiter(o, target, t.prefix[i], names, start)
		} else {
			t.syncers[i], err = newPipelined(o, target, t.prefix[i], names, start, name)
		}
		if err != nil {
			t.syncers[i] = nil
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// close ends the syncers and deletes what they left in Redis.
func (t *race) close() error {
	var errs []error
	for i, s := range t.syncers {
		if s != nil {
			errs = append(errs, s.close(), t.servers.Clean(t.prefix[i]))
		}
	}
	if t.info != nil {
		errs = append(errs, t.info.Close())
	}
	return errors.Join(append(errs, t.servers.Close())...)
}

// warm makes one window of ticks that nobody measures.
func (t *race) warm() error {
	for i := range t.syncers {
		for range t.o.ticksPerWindow() {
			if err := t.step(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// step makes a syncer's next tick.
func (t *race) step(i int) error {
	t.syncers[i].offer(t.next[i])
	t.next[i]++
	if err := t.syncers[i].sync(); err != nil {
		return fmt.Errorf("%s: %w", syncers[i], err)
	}
	return nil
}

// race measures one window of ticks of each syncer, in turns whose order rotates.
func (t *race) race(ctx context.Context) error {
	ticks := t.o.ticksPerWindow()
	for turn := 0; t.costs[0].ticks < ticks; turn++ {
		length := min(ticksPerTurn, ticks-t.costs[0].ticks)
		for i := range t.syncers {
			if err := t.measure((turn+i)%len(t.syncers), length); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// measure adds a syncer's next ticks to its costs. What the load takes is left out,
// save that Redis's processor time is that of the whole turn.
func (t *race) measure(i, ticks int) error {
	s, cost := t.syncers[i], &t.costs[i]
	runtime.GC()
	redisBefore, err := t.redisTime()
	if err != nil {
		return err
	}
	sent, received := s.bytes()
	trips := s.roundTrips()
	for range ticks {
		s.offer(t.next[i])
		t.next[i]++
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		node, begin := processorTime(), time.Now()
		err := s.sync()
		cost.elapsed += time.Since(begin)
		cost.node += processorTime() - node
		runtime.ReadMemStats(&after)
		if err != nil {
			return fmt.Errorf("%s: %w", syncers[i], err)
		}
		cost.allocs += after.Mallocs - before.Mallocs
	}
	redisAfter, err := t.redisTime()
	if err != nil {
		return err
	}
	sentAfter, receivedAfter := s.bytes()
	cost.ticks += ticks
	cost.redis += redisAfter - redisBefore
	cost.sent += sentAfter - sent
	cost.received += receivedAfter - received
	cost.trips += s.roundTrips() - trips
	return nil
}

// redisTime is the processor time that Redis took since it started.
func (t *race) redisTime() (time.Duration, error) {
	text, err := redis.String(t.info.Do("INFO", "cpu"))
	if err != nil {
		return 0, err
	}
	return processorTimeIn(text)
}

// processorTimeIn finds the processor time in what INFO answers.
func processorTimeIn(info string) (sum time.Duration, err error) {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu: %q: %w", line, err)
		}
		sum += time.Duration(seconds * float64(time.Second))
		found++
	}
	if found != 2 {
		return 0, errors.New("INFO cpu does not tell used_cpu_sys and used_cpu_user")
	}
	return sum, nil
}

// agreeing is how many entities are compared.
const agreeing = 1000

// agree checks that all syncers told Redis the same: to the unit, the sum of each
// entity's counters over the run.
func (t *race) agree(size int) error {
	names := backend.KeyNames(min(size, agreeing))
	first := t.syncers[1].(*pipelined).epoch - 2
	var sums [3][]uint64
	for i, prefix := range t.prefix {
		sums[i] = make([]uint64, len(names))
		for epoch := first; epoch <= first+2; epoch++ {
			keys := make([]string, len(names))
			for j, name := range names {
				keys[j] = fmt.Sprintf("%s:%s:%d", prefix, name, epoch)
			}
			if err := t.servers.Read(keys, sums[i]); err != nil {
				return err
			}
		}
	}
	for j, name := range names {
		if sums[0][j] != sums[1][j] || sums[0][j] != sums[2][j] || sums[0][j] == 0 {
			return fmt.Errorf("they did not do the same work: of %s Redis holds %d units by %v", name,
				[3]uint64{sums[0][j], sums[1][j], sums[2][j]}, syncers)
		}
	}
	return nil
}
