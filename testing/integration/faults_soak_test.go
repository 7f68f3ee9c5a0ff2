// This file is the soak: every fault that must cost nothing, at random, one after
// the other and two at a time, for as long as the flag says.

package integration

import (
	"fmt"
	"time"
)

var soakScenarios = []scenario{{
	name: "soak", run: soak, partitions: 2,
	args: append([]string{
		"--busy-reply-threshold", "1", "--enable-debug-command", "local", "--loading-process-events-interval-bytes", "1024",
	}, durable...),
}}

// A mishap is one fault of the soak. It heals what it breaks.
type mishap struct {
	name string
	run  func(f *fleet, b *backend)
}

// passing is a mishap that lasts for a while.
func passing(name string, inject, heal func(f *fleet, b *backend)) mishap {
	return mishap{name, func(f *fleet, b *backend) {
		d := time.Duration(1 + f.rng.Int64N(int64(brief)))
		f.during(d, func() { inject(f, b) }, func() { heal(f, b) })
	}}
}

var mishaps = []mishap{
	passing("bad requests",
		func(f *fleet, b *backend) { b.strike(f.rng, f.rng.Float64(), anyAction) },
		func(f *fleet, b *backend) { b.proxy.Handle(nil) }),
	passing("bad requests everywhere",
		func(f *fleet, b *backend) {
			for _, b := range f.servers {
				b.strike(f.rng, f.rng.Float64(), anyAction)
			}
		},
		func(f *fleet, b *backend) {
			for _, b := range f.servers {
				b.proxy.Handle(nil)
			}
		}),
	passing("refused", func(f *fleet, b *backend) { b.proxy.Down() }, func(f *fleet, b *backend) { up(f.T, b) }),
	passing("stopped", func(f *fleet, b *backend) { b.Pause() }, func(f *fleet, b *backend) { b.Resume() }),
	passing("killed", func(f *fleet, b *backend) { b.Kill() }, func(f *fleet, b *backend) {
		b.Restart()
		b.admin = b.Conn()
	}),
	passing("out of memory",
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "maxmemory", "1") },
		func(f *fleet, b *backend) { b.do(f, "CONFIG", "SET", "maxmemory", "0") }),
	passing("read-only",
		func(f *fleet, b *backend) { b.do(f, "REPLICAOF", "127.0.0.1", "1") },
		func(f *fleet, b *backend) { b.do(f, "REPLICAOF", "NO", "ONE") }),
	passing("busy", occupy, func(f *fleet, b *backend) { killScript(f, b) }),
	{"scripts forgotten", func(f *fleet, b *backend) { b.do(f, "SCRIPT", "FLUSH") }},
	{"connections killed", func(f *fleet, b *backend) { b.killClients(f) }},
	{"a node restarted", func(f *fleet, b *backend) {
		node := f.present()[0]
		node.endIn(10 * time.Second)
		f.start(fmt.Sprintf("restarted %d", len(f.nodes)))
	}},
	{"a clock off", func(f *fleet, b *backend) {
		f.present()[0].clock.step(time.Duration(f.rng.Int64N(int64(window/4))) - window/8)
	}},
}

// soak breaks something at random until its time is over.
func soak(f *fleet) {
	met := map[string]int{}
	for end := time.Now().Add(*faultsSoak); time.Now().Before(end); {
		f.run(0.7)
		m := mishaps[f.rng.IntN(len(mishaps))]
		met[m.name]++
		m.run(f, f.any())
		if f.Failed() {
			break
		}
	}
	f.run(0.7)
	f.Logf("mishaps: %v", met)
}
