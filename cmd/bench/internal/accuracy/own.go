package accuracy

// This file makes a scenario of flags: one line of one's own.

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// ownFlags are those of a scenario of one's own.
const ownFlags = "-threshold, -window, -tick, -kind, -burst, -nodes, -load"

// The bounds of a scenario of one's own: what a machine simulates within minutes.
const (
	maxNodes = 10_000
	maxLoad  = 1000
)

// own is what the flags say of a scenario of one's own. Immutable after check.
type own struct {
	asked     bool
	threshold uint64
	window    time.Duration
	tick      time.Duration
	kind      string
	burst     time.Duration
	nodes     int
	load      float64
}

func (o *own) flags(flags *flag.FlagSet) {
	flags.Uint64Var(&o.threshold, "threshold", usualThreshold, "of your own: `units` per window")
	flags.DurationVar(&o.window, "window", time.Minute, "of your own: window")
	flags.DurationVar(&o.tick, "tick", 0, "of your own: tick; 0: what follows from the window")
	flags.StringVar(&o.kind, "kind", string(ratelimit.WindowLeaky), "of your own: `kind` of window: leaky, sliding or fixed")
	flags.DurationVar(&o.burst, "burst", 0, "of your own: burst interval; 0: the whole window at once")
	flags.IntVar(&o.nodes, "nodes", 10, "of your own: number of nodes")
	flags.Float64Var(&o.load, "load", 3, "of your own: what is offered, in `limits`")
}

// check finds out whether a scenario of one's own is asked for, and what is wrong with
// it: all of it.
func (o *own) check(flags *flag.FlagSet) error {
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "threshold", "window", "tick", "kind", "burst", "nodes", "load":
			o.asked = true
		}
	})
	if !o.asked {
		return nil
	}
	var errs []error
	if o.nodes < 1 || o.nodes > maxNodes {
		errs = append(errs, fmt.Errorf("-nodes %d: want 1 to %d", o.nodes, maxNodes))
	}
	if math.IsNaN(o.load) || o.load <= 0 || o.load > maxLoad {
		errs = append(errs, fmt.Errorf("-load %v: want more than 0 and at most %d", o.load, maxLoad))
	}
	if o.threshold == 0 || o.threshold > 1<<53-1 {
		errs = append(errs, fmt.Errorf("-threshold %d: want 1 to 2^53 - 1", o.threshold))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s := o.scenario()
	cfg := planOf(custom).config(&s)
	cfg.RedisURLs = []string{"memory://"}
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("-window %v -tick %v -kind %s -burst %v:\n%w", o.window, o.tick, o.kind, o.burst, err)
	}
	return nil
}

// scenario is the line of one's own.
func (o *own) scenario() scenario {
	s := steady(o.load, o.nodes)
	s.by, s.threshold, s.window, s.tick = forOwn, o.threshold, o.window, o.tick
	s.kind, s.burst = ratelimit.WindowKind(o.kind), o.burst
	s.name = fmt.Sprintf("%s %gx %s, %d per %v", o.kind, o.load, nodesText(o.nodes), o.threshold, o.window)
	return s
}
