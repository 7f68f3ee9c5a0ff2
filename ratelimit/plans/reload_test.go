package plans

// This file tests reloads: what stays, what goes, and that no unit is lost over them.

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
)

func TestWhatAReloadChangesAndKeeps(t *testing.T) {
	t.Parallel()
	f := open(t, file)
	burst, hourly := f.Limiter("burst"), f.Limiter("hourly")
	f.passes("GET /v1/x", "bob", 5, 0)
	for i, row := range []struct {
		name, from, to string
		n, want        int // of another five of bob, a second later each
		log            string
	}{
		{"a threshold", "threshold: 8", "threshold: 9", 5, 4, "limit hourly: threshold 9, was 8"},
		{"a key's plan", "ann: pro", "bob: pro", 5, 5, "keys: 2 have another plan"},
		{"a plan", "hourly: 100", "hourly: 16", 5, 2, "plan pro: hourly 16, was 100"},
		{"a route", "limits: [burst, hourly, all]", "limits: [burst, all]", 5, 5, "routes changed"},
		{"the list", "routes:", "block: [{key: mallory}]\nroutes:", 5, 0, "block changed"},
	} {
		text := strings.Replace(file, row.from, row.to, 1)
		if i == 2 {
			text = strings.Replace(text, "ann: pro", "bob: pro", 1)
		}
		f.reload(text)
		f.clock.Advance(time.Second)
		if got := f.passes("GET /v1/x", "bob", row.n, 429); got != row.want {
			t.Errorf("%s: %d pass, want %d", row.name, got, row.want)
		}
		if !strings.Contains(f.log.String(), row.log) {
			t.Errorf("%s: the log lacks %q:\n%s", row.name, row.log, f.log)
		}
	}
	if f.Limiter("burst") != burst || f.Limiter("hourly") != hourly {
		t.Error("a limiter was replaced that could stay")
	}
	if strings.Contains(f.log.String(), "bob") || strings.Contains(f.log.String(), "mallory") {
		t.Errorf("the log names keys:\n%s", f.log)
	}
}

// A limit that gets another limiter goes on from what the fleet counted, one whose window changes
// starts anew, and one that vanishes delivers.
func TestLimitersThatAreReplacedOrGo(t *testing.T) {
	t.Parallel()
	text := func(l string) string {
		return "limits:\n  l: {" + l + ", strict_first_contact: true}\n  other: {threshold: 100}\nroutes: [{pattern: /, key: everybody, limits: [l]}]\n"
	}
	f := open(t, text("threshold: 9, window: 1h, kind: sliding"))
	f.passes("GET /", "", 5, 0)
	before, other := f.Limiter("l"), f.Limiter("other")
	f.reload(text("threshold: 9, window: 1h, kind: sliding, count_limited: true"))
	if f.Limiter("l") == before || f.Limiter("other") != other {
		t.Fatal("the wrong limiters were replaced")
	}
	if s := before.Stats(); s.Counted != 5 || s.Delivered != 5 {
		t.Errorf("the limiter before counted %d and delivered %d, want 5, 5", s.Counted, s.Delivered)
	}
	f.Limiter("l").Peek("everybody") // asks for a read
	f.clock.Advance(2 * time.Second)
	if got := f.passes("GET /", "", 9, 429); got != 4 {
		t.Errorf("%d pass after a replacement, want the 4 that are left", got)
	}
	f.reload(text("threshold: 9, window: 2h, kind: sliding"))
	if got := f.passes("GET /", "", 20, 429); got != 9 {
		t.Errorf("%d pass in another window, want 9", got)
	}
	gone := f.Limiter("l")
	f.reload("limits: {other: {threshold: 100}}\nroutes: []\n")
	if f.Limiter("l") != nil || gone.Stats().Delivered != 9 {
		t.Errorf("the limiter that went delivered %d, want 9", gone.Stats().Delivered)
	}
	if got := f.Limits(); len(got) != 1 || got[0] != "other" {
		t.Errorf("limits %v", got)
	}
}

func TestReloadsAreLoggedOnceAndCounted(t *testing.T) {
	t.Parallel()
	set := metrics.NewSet()
	f := open(t, good, WithMetricsSet(set))
	opened := strings.Count(f.log.String(), "\n")
	for range 3 {
		f.Refresh(t.Context()) // nothing changed
	}
	if got := strings.Count(f.log.String(), "\n"); got != opened {
		t.Errorf("reloads that change nothing are logged:\n%s", f.log)
	}
	f.write("limits: 7")
	for range 3 {
		f.Refresh(t.Context())
	}
	f.reload(good)
	var exposed strings.Builder
	set.WritePrometheus(&exposed)
	for _, want := range []string{
		`global_rate_limiter_plans_refresh_total{scope="default",result="ok"} 5`,
		`global_rate_limiter_plans_refresh_total{scope="default",result="refused"} 3`,
		`global_rate_limiter_plans_refresh_ok{scope="default"} 1`,
		`{scope="default/l"`,
	} {
		if !strings.Contains(exposed.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	if got := strings.Count(f.log.String(), "cannot be read"); got != 1 || strings.Count(f.log.String(), "can be read again") != 1 {
		t.Errorf("what was wrong is said %d times, want once, and its end once:\n%s", got, f.log)
	}
	f.Close(context.Background())
	exposed.Reset()
	if set.WritePrometheus(&exposed); strings.Contains(exposed.String(), "plans") {
		t.Errorf("after Close: %s", exposed.String())
	}
	if err := f.Refresh(t.Context()); err != ErrClosed {
		t.Errorf("Refresh after Close: %v", err)
	}
}

func TestRunReloadsOnTheClock(t *testing.T) {
	t.Parallel()
	f := open(t, good)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx, 10*time.Second) }()
	f.write(strings.Replace(good, "l: 7", "l: 2", 1))
	for f.current.Load().file.Plans["pro"]["l"] != 2 {
		f.clock.Advance(10 * time.Second) // from when the goroutine has begun
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("Run: %v", err)
	}
	if err := f.Run(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "more than 0") {
		t.Errorf("an interval of 0: %v", err)
	}
}

// Reloads that replace limiters under load: what passed is what the store holds in the end, to the
// unit, with nothing dropped.
func TestReloadsUnderLoadLoseNothing(t *testing.T) {
	t.Parallel()
	mem := memstore.New(nil)
	var mu sync.Mutex
	var made []*ratelimit.Limiter
	f := open(t, good)
	text := func(i int) string { // every second file replaces a's limiter, and b comes and goes
		limits := fmt.Sprintf("  a: {threshold: 1000000000, window: 24h, kind: fixed, count_limited: %v}\n  c: {threshold: %d, window: 24h, kind: fixed}\n", i%2 == 0, 1000000+i)
		names := "a, c"
		if i%3 == 0 {
			limits += "  b: {threshold: 1000000000, window: 24h, kind: fixed}\n"
			names = "a, b, c"
		}
		return "limits:\n" + limits + "routes: [{pattern: /, key: everybody, limits: [" + names + "]}]\n"
	}
	f.write(text(0))
	cfg := ratelimit.DefaultConfig()
	p, err := Open(f.path, cfg, WithMetricsSet(metrics.NewSet()), WithLogger(nil), WithPartitions(func(string) []ratelimit.Partition {
		return []ratelimit.Partition{{Name: "memory", Store: mem}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	note := func() {
		mu.Lock()
		defer mu.Unlock()
		for _, name := range p.Limits() {
			made = append(made, p.Limiter(name))
		}
	}
	note()
	var passed [2]atomic.Uint64 // without and with b
	h := p.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch len(w.Header()["Ratelimit"]) {
		case 2:
			passed[0].Add(1)
		case 3:
			passed[1].Add(1)
		}
	}))
	stop := make(chan struct{})
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil)); w.Code != 200 {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	for i := 1; i < 40; i++ {
		f.write(text(i))
		if err := p.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		note()
	}
	close(stop)
	workers.Wait()
	if err := p.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	var counted, delivered, dropped uint64
	seen := map[*ratelimit.Limiter]bool{}
	for _, l := range made {
		if !seen[l] {
			seen[l] = true
			s := l.Stats()
			counted, delivered = counted+s.Counted, delivered+s.Delivered
			dropped += s.Dropped.Stale + s.Dropped.Poisoned + s.Dropped.Overflow + s.Dropped.Closed + s.Dropped.Unknown
		}
	}
	want := 2*passed[0].Load() + 3*passed[1].Load()
	if counted != want || delivered != want || dropped != 0 || want == 0 || len(seen) < 30 {
		t.Errorf("%d limiters counted %d, delivered %d, dropped %d; passed %d and %d, want %d",
			len(seen), counted, delivered, dropped, passed[0].Load(), passed[1].Load(), want)
	}
	epoch := time.Now().UnixNano() / int64(24*time.Hour)
	held := uint64(0)
	for _, name := range []string{"a", "b", "c"} {
		for e := epoch - 1; e <= epoch; e++ {
			total, _ := mem.Get(fmt.Sprintf("%s/%s/24h:everybody:%d", cfg.RedisKeyPrefix, name, e))
			held += uint64(total)
		}
	}
	if held != want {
		t.Errorf("the store holds %d, want %d", held, want)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil)); w.Code != 200 {
		t.Errorf("after Close: status %d", w.Code)
	}
}
