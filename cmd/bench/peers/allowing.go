package main

// This file is Allow, which answers yes or no, beside Check and those peers that answer no
// more than that.

import (
	"context"

	"github.com/hanzoai/limiters/ratelimit"
)

// away is the address of a Redis that is not there.
const away = "redis://127.0.0.1:1"

// allowing returns the contestants whose ratios begin with allow, and what they are
// compared with. Low thresholds are reached in a run: what is measured there is allowed
// and refused requests, as they come.
func allowing() []contestant {
	list := []contestant{{name: "allow", variant: true, open: func(int) (*instance, error) {
		l, err := newOurs(ratelimit.DefaultConfig())
		if err != nil {
			return nil, err
		}
		return &instance{
			check:  l.Allow,
			settle: func() error { return l.Sync(context.Background()) },
			close:  func() error { return l.Close(context.Background()) },
		}, nil
	}}}
	for _, row := range []struct {
		name      string
		url       string
		threshold uint64
	}{{"low", "memory://", 100}, {"low_1000", "memory://", 1000}, {"low_outage", away, 100}} {
		list = append(list,
			low("allow_"+row.name, row.url, row.threshold, func(l *ratelimit.Limiter, key string) { l.Allow(key) }),
			low("check_"+row.name, row.url, row.threshold, func(l *ratelimit.Limiter, key string) { l.Check(key, 1) }),
		)
	}
	return list
}

// low is one of ours at a low threshold. It says true whatever it decided.
func low(name, url string, threshold uint64, decide func(l *ratelimit.Limiter, key string)) contestant {
	return contestant{name: name, variant: true, serial: true, open: func(int) (*instance, error) {
		l, err := newOursWith(url, threshold, ratelimit.DefaultConfig())
		if err != nil {
			return nil, err
		}
		return &instance{
			check: func(key string) bool {
				decide(l, key)
				return true
			},
			settle: func() error {
				if err := l.Sync(context.Background()); url != away {
					return err
				}
				return nil
			},
			close: func() error {
				ctx, cancel := context.WithCancel(context.Background())
				if url == away {
					cancel() // what is left has nowhere to go
				}
				defer cancel()
				if err := l.Close(ctx); url != away {
					return err
				}
				return nil
			},
		}, nil
	}}
}

// allowFigures returns the ratios of Allow.
func allowFigures(all table) []figure {
	return []figure{
		variants(all, "allow", "Serial", "allow", "xtime"),
		variants(all, "allow_floor", "Serial", "allow", floor),
		{
			name:  "allow_parallel",
			ratio: median(growth(all, "allow", "Parallel", "Serial", elapsed)),
			cpu:   median(growth(all, "allow", "Parallel", "Serial", processor)),
		},
		variants(all, "allow_hotkey", "HotParallel", "allow", floor),
		variants(all, "allow_onekey", "HotSerial", "allow", floor),
		variants(all, "allow_low", "Serial", "allow_low", "check_low"),
		variants(all, "allow_low_1000", "Serial", "allow_low_1000", "check_low_1000"),
		variants(all, "allow_low_outage", "Serial", "allow_low_outage", "check_low_outage"),
	}
}
