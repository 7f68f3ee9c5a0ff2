package httplimit

// This file tests what the fields say about time: when more is available, how long the
// policy's window is, and when to come back.

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// said returns a parameter of the one item that a field holds, or -1.
func said(field, name string) int64 {
	for part := range strings.SplitSeq(field, ";") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				panic(err)
			}
			return n
		}
	}
	return -1
}

// Whatever was asked before, allowed or not: a request for r units passes, and one for a
// unit more after t. Where nothing that the node hears changes that it does not a second
// before.
func TestMoreThanRIsAvailableAfterT(t *testing.T) {
	t.Parallel()
	for _, kind := range []ratelimit.WindowKind{ratelimit.WindowLeaky, ratelimit.WindowSliding, ratelimit.WindowFixed} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(rt *rapid.T) { moreAfterT(rt, kind) })
		})
	}
}

// moreAfterT makes some requests three times, and then another one: at once, after t, and
// a second before.
func moreAfterT(t *rapid.T, kind ratelimit.WindowKind) {
	cfg := ratelimit.DefaultConfig()
	cfg.Window, cfg.StrictFirstContact = kind, true
	cfg.GlobalThreshold = rapid.Uint64Range(2, 40).Draw(t, "threshold")
	cfg.Inclusive = rapid.Bool().Draw(t, "inclusive")
	cfg.BurstInterval = time.Duration(rapid.SampledFrom([]int{0, 3, 20}).Draw(t, "burst in seconds")) * time.Second
	into := time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "into the window"))
	gaps := rapid.SliceOfN(rapid.Int64Range(0, int64(15*time.Second)), 1, 8).Draw(t, "gaps")
	costs := rapid.SliceOfN(rapid.Uint64Range(1, 15), len(gaps), len(gaps)).Draw(t, "costs")

	after := func(more uint64, wait func(t int64) time.Duration) (string, int) {
		c := ratelimittest.NewClock()
		lim := ratelimittest.NewLimiter(nil, c, cfg)
		defer lim.Close(context.Background())
		cost := uint64(0)
		limit, err := New(lim, Header("X-User"), WithCost(func(*http.Request) uint64 { return cost }))
		if err != nil {
			t.Fatal(err)
		}
		h := limit(ok)
		c.Advance(into)
		var r *http.Response
		for i, gap := range gaps {
			c.Advance(time.Duration(gap))
			cost = costs[i]
			r = ask(h, "ann")
		}
		field := r.Header.Get("RateLimit")
		c.Advance(wait(said(field, "t")))
		cost = uint64(said(field, "r")) + more
		return field, ask(h, "ann").StatusCode
	}
	field, status := after(0, func(int64) time.Duration { return 0 })
	if said(field, "r") > 0 && status != 200 {
		t.Errorf("%s, and a request for r units has status %d", field, status)
	}
	if said(field, "t") < 0 {
		return // the whole quota is available, or there is none
	}
	if field, status = after(1, func(t int64) time.Duration { return time.Duration(t) * time.Second }); status != 200 {
		t.Errorf("%s, and after t a request for r + 1 units has status %d", field, status)
	}
	field, status = after(1, func(t int64) time.Duration { return max(0, time.Duration(t-1)*time.Second-time.Microsecond) })
	if status != 429 && kind == ratelimit.WindowFixed && cfg.BurstInterval == 0 {
		t.Errorf("%s, and a second and more before t a request for r + 1 units has status %d", field, status)
	}
}

// The response that takes the last unit says what the refusal after it says.
func TestTIsTheSameOnSuccessAndOnRefusal(t *testing.T) {
	t.Parallel()
	for _, into := range []time.Duration{1, 7 * time.Second, 41 * time.Second, 59*time.Second + 1} {
		lim, c := newLimiter(t, nil)
		h := newMiddleware(t, lim)(ok)
		c.Advance(into)
		var last *http.Response
		for range 3 {
			last = ask(h, "ann")
		}
		refused := ask(h, "ann")
		equal(t, "statuses", []int{last.StatusCode, refused.StatusCode}, []int{200, 429})
		equal(t, "RateLimit", refused.Header.Get("RateLimit"), last.Header.Get("RateLimit"))
		equal(t, "t", fmt.Sprint(said(last.Header.Get("RateLimit"), "t")), refused.Header.Get("Retry-After"))
	}
}

func TestAShortWindowOverTheFields(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.WindowInterval = 200 * time.Millisecond })
	equal(t, "fields", fields(ask(newMiddleware(t, lim, WithFields(RateLimit|XRateLimit))(ok), "ann")), map[string][]string{
		fieldPolicy: {`"default";q=15;w=1`}, fieldRateLimit: {`"default";r=2;t=1`},
		fieldXLimit: {"3"}, fieldXRemaining: {"2"}, fieldXReset: {"1"},
	})
}

// Retry-After is digits, of the seconds that the client has to wait: never an exponent,
// never 0, and never the greatest duration where no wait helps.
func TestSetRetryAfter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		window    time.Duration
		threshold uint64
		first     uint64 // units that the first contact takes
		want      string
	}{
		{time.Minute, 4, 1, ""},
		{time.Minute, 0, 1, ""},
		{time.Minute, 1, 1, ""},
		{20 * 24 * time.Hour, 1001, 2000, "1382401"}, // the window began 14 days ago
		{100 * time.Millisecond, 4, 3, "1"},
	} {
		lim, c := newLimiter(t, func(cfg *ratelimit.Config) {
			cfg.GlobalThreshold, cfg.WindowInterval = row.threshold, row.window
		})
		c.Advance(1)
		lim.Check("ann", row.first)
		h := http.Header{}
		SetRetryAfter(h, lim.Check("ann", 1))
		equal(t, fmt.Sprint(row.window, " of ", row.threshold), h.Get("Retry-After"), row.want)
	}
}
