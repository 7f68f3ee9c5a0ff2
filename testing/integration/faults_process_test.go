// This file stops, kills and empties servers under a fleet.

package integration

import (
	"slices"
	"strings"
	"time"
)

// durable has a server remember all that it acknowledged.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

var processScenarios = []scenario{
	{name: "sigstop-below-timeout", run: stopped(reply / 4)},
	{name: "sigstop-beyond-timeout", run: stopped(brief)},
	{name: "sigstop-beyond-windows", run: stopped(9 * window / 4), stale: true, unknown: true},
	{name: "sigkill-durable", args: durable, run: killed},
	{name: "sigkill-forgetful", run: told(killed), unknown: true, destroys: true},
	{name: "script-flush", run: scriptFlush},
	{name: "flushall", run: told(flushAll), unknown: true, destroys: true},
	{name: "loading", run: loading, args: []string{
		"--enable-debug-command", "local", "--key-load-delay", "0", "--loading-process-events-interval-bytes", "1024",
	}},
}

// stopped lets a server hang for d, thrice.
func stopped(d time.Duration) func(*fleet) {
	return func(f *fleet) {
		f.run(0.7)
		for range 3 {
			b := f.any()
			f.during(d, b.Pause, b.Resume)
			f.run(0.7)
		}
	}
}

// killed kills a server and starts it again, twice.
func killed(f *fleet) {
	f.run(0.7)
	for range 2 {
		b := f.any()
		f.during(brief/4, func() {
			b.Kill()
			f.lost(b)
		}, func() {
			b.Restart()
			b.admin = b.Conn()
		})
		f.run(0.7)
	}
	f.struck()
}

// lost tells the witnesses that a server's data may be gone.
func (f *fleet) lost(b *backend) {
	for _, m := range f.nodes {
		for i, w := range m.witnesses {
			if f.servers[i] == b {
				w.lost()
			}
		}
	}
}

// scriptFlush has the servers forget the script, again and again.
func scriptFlush(f *fleet) {
	f.run(0.7)
	for range 3 {
		f.during(brief, func() {
			for range 5 {
				f.any().do(f, "SCRIPT", "FLUSH")
				f.clock.sleep(ticks / 2)
			}
		}, func() {})
		f.run(0.7)
	}
}

// flushAll empties servers, some of them while a batch is being sent again.
func flushAll(f *fleet) {
	f.run(0.7)
	for range 4 {
		b := f.any()
		f.during(brief, func() {
			if f.rng.IntN(2) == 0 {
				b.strike(f.rng, 0.7, anyAction)
			}
			f.clock.sleep(brief / 2)
			b.do(f, "FLUSHALL")
			f.lost(b)
		}, func() { b.proxy.Handle(nil) })
		f.run(0.7)
	}
}

// loading has servers read their data back, and refuse everything meanwhile.
func loading(f *fleet) {
	f.run(0.7)
	for range 2 {
		b := f.any()
		f.during(ticks, func() {
			keys := b.do(f, "DBSIZE").(int64)
			b.do(f, "CONFIG", "SET", "key-load-delay", int64(brief/time.Microsecond)/max(1, keys))
			b.do(f, "DEBUG", "RELOAD") // returns when all is loaded
		}, func() {})
		f.run(0.7)
	}
	f.felt("loading")
}

// felt checks that an attempt failed for the cause.
func (f *fleet) felt(cause string) {
	f.Helper()
	causes := map[string]int{}
	for _, m := range f.nodes {
		for _, w := range m.witnesses {
			w.mu.Lock()
			for cause, n := range w.failures {
				causes[cause] += n
			}
			w.mu.Unlock()
		}
	}
	if causes[cause] == 0 {
		f.Errorf("no attempt failed for the cause %s; those that did: %v", cause, causes)
	}
}

// has reports that one of a text's lines is this one.
func has(text, line string) bool {
	return slices.Contains(strings.Split(text, "\r\n"), line)
}

// field returns a value of what INFO says.
func field(text, name string) string {
	for line := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return value
		}
	}
	return ""
}
