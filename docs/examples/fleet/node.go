package main

// This file is one process of the fleet.

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A report is what a node let through in one second.
type report struct {
	Node            string
	Second          int // 1 is the first
	Passed, Offered uint64
}

// config is the same for every process of the fleet.
func config(redis string) ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = limit
	cfg.WindowInterval = window
	cfg.TickInterval = 100 * time.Millisecond // how soon they learn of each other
	cfg.RedisURLs = []string{redis}
	return cfg
}

// beNode offers load for d and writes a report a second.
func beNode(ctx context.Context, name, redis string, d time.Duration, out io.Writer) error {
	lim, err := ratelimit.New(config(redis))
	if err != nil {
		return err
	}
	offer(ctx, lim, d, func(r report) error {
		r.Node = name
		return json.NewEncoder(out).Encode(r)
	})
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return lim.Close(end)
}

// offer offers load for d, or until ctx ends or nobody takes its reports.
func offer(ctx context.Context, lim *ratelimit.Limiter, d time.Duration, tell func(report) error) {
	const every = 10 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	r := report{Second: 1}
	for step := range int(d / every) {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for range offered * int(every) / int(time.Second) {
			r.Offered++
			if lim.Allow("the shared key") {
				r.Passed++
			}
		}
		if (step+1)%int(time.Second/every) == 0 {
			if tell(r) != nil {
				return
			}
			r = report{Second: r.Second + 1}
		}
	}
}
