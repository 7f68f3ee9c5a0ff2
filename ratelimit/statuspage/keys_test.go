package statuspage

// This file tests what the page says of single keys.

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// A panic in the caller's text for a key is that of one request; the next is answered.
func TestAPanicInTheKeyTextHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	lim.Check("k", 50)
	broken := true
	p := newPage(lim, c, WithKeyText(func(string) string {
		if broken {
			panic("key text")
		}
		return "masked"
	}))
	for range 3 {
		func() {
			defer func() {
				if got := recover(); got != "key text" {
					t.Errorf("recovered %v", got)
				}
			}()
			get(p, "/", "")
		}()
	}
	broken = false
	if w := get(p, "/", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "masked") {
		t.Errorf("after a panic: %d", w.Code)
	}
}

// The key text is asked while nobody waits for it: it may ask for the page itself.
func TestTheKeyTextHoldsNoLock(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	lim.Check("k", 50)
	var p *page
	depth := 0
	p = newPage(lim, c, WithKeyText(func(key string) string {
		if depth++; depth == 1 {
			if w := get(p, "/?format=json", ""); w.Code != 200 {
				t.Errorf("within: %d", w.Code)
			}
		}
		lim.Check(key, 1)
		return key
	}))
	if w := get(p, "/", ""); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

func TestOneKeyIsLookedUp(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) { cfg.CustomKeys = ratelimit.Overrides{"vip": 1000, "<b>": 7} })
	lim.Check("vip", 500)
	lim.Check("", 10)
	before := lim.Stats()
	for key, want := range map[string]looked{
		"vip":  {true, entity{Key: "vip", Level: 500, Threshold: 1000, Custom: true, Pressure: 0.5, Tier: "normal", Basis: "local"}},
		"":     {true, entity{Key: `""`, Level: 10, Threshold: 100, Pressure: 0.1, Tier: "low", Basis: "local"}},
		"new":  {false, entity{Key: "new", Threshold: 100, Tier: "idle", Basis: "first_contact"}},
		"<b>":  {false, entity{Key: "<b>", Threshold: 7, Custom: true, Tier: "idle", Basis: "first_contact"}},
		"\xff": {false, entity{Key: `"\xff"`, Threshold: 100, Tier: "idle", Basis: "first_contact"}},
	} {
		d := decode(t, at{newPage(lim, c), "/?format=json&key=" + url.QueryEscape(key)})
		if d.Looked == nil {
			t.Fatalf("%q is not looked up", key)
		}
		got := *d.Looked
		if got.Partition == "" {
			t.Errorf("%q has no partition", key)
		}
		if got.Partition = ""; got != want {
			t.Errorf("%q: %+v, want %+v", key, got, want)
		}
		if body := get(newPage(lim, c), "/?key="+url.QueryEscape(key), "").Body.String(); !strings.Contains(body, `id="looked"`) || strings.Contains(body, "<b>") {
			t.Errorf("%q: the page does not say, or says too much", key)
		}
	}
	if after := lim.Stats(); after.Allowed != before.Allowed || after.Limited != before.Limited || after.Entities != before.Entities {
		t.Errorf("looking changed something: %+v, before %+v", after, before)
	}
	if d := decode(t, newPage(lim, c)); d.Looked != nil {
		t.Errorf("looked up %+v without a key", d.Looked)
	}
}

func TestWhoIsRefusedMost(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	for i := range 40 {
		key := fmt.Sprint("k", i)
		lim.Check(key, 99)
		lim.Check(key, uint64(i)+2) // refused
	}
	d := decode(t, newPage(lim, c, WithTop(3)))
	if want := []refused{{"k39", 41, 0}, {"k38", 40, 0}, {"k37", 39, 0}}; fmt.Sprint(d.Refused) != fmt.Sprint(want) {
		t.Errorf("refused %v, want %v", d.Refused, want)
	}
	if body := get(newPage(lim, c), "/", "").Body.String(); !strings.Contains(body, `<th scope="row" class="key">k39</th><td class="n">41</td>`) {
		t.Error("the page does not say")
	}
}

// The page lists the overrides in force, not those of the start, and bounds them.
func TestOverridesInForce(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) { cfg.CustomKeys = ratelimit.Overrides{"start": 1} })
	many := map[string]uint64{}
	for i := range 200 {
		many[fmt.Sprintf("k%03d", i)] = uint64(i)
	}
	lim.SetOverrides(many)
	d := decode(t, newPage(lim, c))
	if d.Overrides.InForce != 200 || len(d.Overrides.First) != shownOverrides || d.Overrides.First[0] != (override{"k000", 0}) || d.Overrides.First[49] != (override{"k049", 49}) {
		t.Errorf("%+v", d.Overrides)
	}
	lim.SetOverrides(nil)
	if d := decode(t, newPage(lim, c)); d.Overrides.InForce != 0 || len(d.Overrides.First) != 0 {
		t.Errorf("%+v, want none", d.Overrides)
	}
}

// With a secret for keys no key stands on the page, whether it was asked for or not.
func TestHiddenKeysStayHidden(t *testing.T) {
	t.Parallel()
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	cfg.CustomKeys = ratelimit.Overrides{"sk_live_1": 0}
	lim, err := ratelimit.New(cfg, ratelimit.WithKeyHash([]byte("a secret for this test")), ratelimit.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer lim.Close(t.Context())
	lim.Check("sk_live_1", 5)
	lim.Check("sk_live_2", 5)
	h := New(lim)
	for _, target := range []string{"/", "/?format=json", "/?key=sk_live_1", "/?format=json&key=sk_live_2"} {
		if body := get(h, target, "").Body.String(); strings.Contains(body, "sk_live") || !strings.Contains(body, lim.KeyName("sk_live_1")) {
			t.Errorf("%s shows a key, or not what stands for it", target)
		}
	}
}

func TestWhyAPartitionIsDown(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	for i := range 10 {
		lim.Check(fmt.Sprint("k", i), 1)
	}
	c.Advance(5 * time.Second)
	d := decode(t, newPage(lim, c))
	if d.Partitions[0].Failure != nil {
		t.Errorf("the partition that works: %+v", d.Partitions[0].Failure)
	}
	f := d.Partitions[1].Failure
	if f == nil || !f.Since.After(start) || f.Since.After(start.Add(time.Second)) || f.Step != "connect" || f.Cause != "unreachable" || f.Text != "nothing listens" {
		t.Errorf("the partition that does not: %+v, want since the first attempt", f)
	}
	if p := d.Process; p.ID == 0 || p.Version == "" || p.UptimeSeconds < 0 {
		t.Errorf("process %+v", p)
	}
}
