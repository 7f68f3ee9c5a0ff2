package ratelimit

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// Whatever is asked of a limiter whose keys are secrets, no key stands anywhere but in
// overrides and in what the resolver is asked; decisions and counts are those of any.
func TestKeysThatAreSecretsAreHidden(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef")
	long := "sk_live_" + strings.Repeat("x", 1000)
	var asked []string
	w := newWorld(t)
	n := w.node(func(c *Config) { c.CustomKeys = Overrides{"sk_live_custom": 7} }, WithKeyHash(secret),
		WithResolver(func(key string) (uint64, bool) { asked = append(asked, key); return 50, key == "sk_live_resolved" }))
	clear(secret) // the limiter has a copy
	for key, want := range map[string]uint64{"sk_live_custom": 7, "sk_live_resolved": 50, "sk_live_plain": 100, long: 100, "": 100} {
		for name, ask := range map[string]func() uint64{
			"Check":    func() uint64 { return n.check(key, 1).Threshold() },
			"CheckAll": func() uint64 { return n.CheckAll([]Item{{Key: key}})[0].Threshold() },
			"Peek":     func() uint64 { return n.Peek(key).Threshold() },
			"Reserve":  func() uint64 { r := n.Reserve(key, 0); r.Cancel(); return r.Decision().Threshold() },
			"Fleet": func() uint64 {
				d, err := n.PeekFleet(context.Background(), key)
				if err != nil {
					t.Errorf("PeekFleet: %v", err)
				}
				return d.Threshold()
			},
			"Wait": func() uint64 { _ = n.Wait(context.Background(), key, 0); return n.Peek(key).Threshold() },
		} {
			if got := ask(); got != want {
				t.Errorf("%s(%.20q): threshold %d, want %d", name, key, got, want)
			}
		}
		n.WaitFor(key, 1)
		n.Record(key, 0)
	}
	if err := n.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if s := n.Stats(); s.Undelivered != 0 || s.Delivered != 5 || s.Entities != 5 {
		t.Errorf("%d units delivered, %d undelivered, %d entities; want 5, 0, 5", s.Delivered, s.Undelivered, s.Entities)
	}
	var seen strings.Builder
	fmt.Fprint(&seen, w.mem.Keys(), n.log.String())
	top, _ := n.TopByPressure(10)
	for _, e := range top {
		fmt.Fprint(&seen, e)
	}
	if len(top) != 5 || strings.Contains(seen.String(), "sk_live") || strings.Contains(seen.String(), digestMarker) {
		t.Errorf("%d entities; a key is seen, or its plain digest: %s", len(top), seen.String())
	}
	if name := n.KeyName("sk_live_plain"); !strings.HasPrefix(name, hashMarker) || len(name) != len(hashMarker)+32 ||
		!strings.Contains(seen.String(), name) || name == n.KeyName("") {
		t.Errorf("KeyName is %q, which stands nowhere", name)
	}
	n.Forget("sk_live_plain")
	if got := n.Stats().Entities; got != 4 {
		t.Errorf("%d entities after Forget, want 4", got)
	}
	for _, key := range asked {
		if strings.HasPrefix(key, hashMarker) {
			t.Errorf("the resolver was asked about a digest, %q", key)
		}
	}
}

// Equal secrets share counters, others do not.
func TestNodesShareCountersByTheirSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	strict := func(c *Config) { c.StrictFirstContact = true }
	a := w.node(strict, WithKeyHash([]byte("the first secret")))
	b := w.node(strict, WithKeyHash([]byte("the first secret")))
	c := w.node(strict, WithKeyHash([]byte("the other secret")))
	a.check("k", 60)
	w.clock.Advance(a.cfg.TickInterval)
	for name, n := range map[string]*node{"equal": b, "other": c} {
		n.check("k", 1)
		w.clock.Advance(2 * n.cfg.TickInterval)
		if got := n.Peek("k").Level() > 50; got != (name == "equal") {
			t.Errorf("%s secret: level %v", name, n.Peek("k").Level())
		}
	}
}

func TestASecretThatIsTooShortIsAnError(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	for _, secret := range [][]byte{nil, {}, []byte("hunter2"), make([]byte, MinKeyHashSecret-1)} {
		l, err := New(cfg, WithKeyHash(secret))
		if err == nil {
			_ = l.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), "WithKeyHash") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret of %d bytes: %v", len(secret), err)
		}
	}
}
