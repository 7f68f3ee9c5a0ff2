package statuspage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/ratelimit"
)

// decode returns the JSON that h answers.
func decode(t *testing.T, h http.Handler) *document {
	t.Helper()
	w := get(h, "/?format=json", "")
	var d document
	decoder := json.NewDecoder(w.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, type %q: %v", w.Code, w.Header().Get("Content-Type"), err)
	}
	return &d
}

func TestJSON(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) {
		cfg.CustomKeys = ratelimit.Overrides{"vip": 1000}
		cfg.TierScanIntervalTicks = 1
		cfg.SyncByUnits = false // the tick sends all at once
	})
	// A key for each partition; which one owns which is the ring's affair.
	lim.Check("vip", 900)
	lim.Check("ann", 40)
	lim.Check("bob", 5)
	for range 20 {
		lim.Check("bob", 200)
	}
	c.Advance(1500 * time.Millisecond)
	d := decode(t, newPage(lim, c))

	s := lim.Stats()
	if d.Units.Counted != 945 || d.Units.Delivered != s.Delivered || d.Units.Undelivered != s.Undelivered || s.Delivered == 0 || s.Undelivered == 0 {
		t.Errorf("units %+v, want those of %+v, some delivered and some not", d.Units, s)
	}
	if want := (decisions{Allowed: 3, Limited: 20}); d.Decisions != want {
		t.Errorf("decisions %+v, want %+v", d.Decisions, want)
	}
	if want := (entities{Held: 3, Max: 300_000, Tiers: tiers{1, 1, 0, 1}, Overrides: 1, Queued: s.Queued}); d.Entities != want {
		t.Errorf("entities %+v, want %+v", d.Entities, want)
	}
	if !d.Time.Equal(start.Add(1500*time.Millisecond)) || d.Scope != "test" || d.GlobalThreshold != 100 || d.WindowSeconds != 60 || d.DryRun || d.CountLimited {
		t.Errorf("head %+v", d)
	}
	if len(d.Partitions) != 2 || len(d.Top.Entities) != 3 || d.Top.LookedAt != 3 {
		t.Fatalf("%d partitions, top %+v", len(d.Partitions), d.Top)
	}
	works, broken := d.Partitions[0], d.Partitions[1]
	synced := start.Add(time.Second)
	if !works.Up || works.LastSync == nil || !works.LastSync.Equal(synced) || works.Scripts != 1 || works.Writes == 0 {
		t.Errorf("the partition that works: %+v", works)
	}
	if broken.Up || broken.LastSync != nil || broken.RoundTrips == 0 || broken.Scripts != 0 || broken.InFlight != s.Undelivered {
		t.Errorf("the partition that does not: %+v", broken)
	}
	vip := d.Top.Entities[0]
	if vip.Key != "vip" || vip.Threshold != 1000 || !vip.Custom || vip.Tier != "hot" || vip.Pressure != vip.Level/1000 {
		t.Errorf("first entity %+v", vip)
	}
	for _, e := range d.Top.Entities {
		if synced := e.Partition == "works"; synced != (e.SyncAgeSeconds != nil) || synced != (e.Basis == "fleet") {
			t.Errorf("entity %+v", e)
		}
	}
	if got, want := len(d.Settings), len(lim.Config().Settings()); got != want {
		t.Errorf("%d settings, want %d", got, want)
	}
}

func TestHTML(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 1_000_000; cfg.DryRun = true })
	lim.Check("ann", 1234567)
	w := get(newPage(lim, c), "/", "")
	body := w.Body.String()
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("status %d, type %q", w.Code, w.Header().Get("Content-Type"))
	}
	for _, want := range []string{
		"<title>Rate limiter test</title>",
		"1\u202f000\u202f000 units per 60 s",
		"Dry run: nothing is limited.",
		"<dd>1\u202f234\u202f567</dd>",
		">works</th><td>not asked yet</td><td class=\"n\">never</td>",
		">ann</th>",
		"123.5 %",
		"<td class=\"n\">1\u202f000\u202f000</td><td>hot</td><td>local</td>",
		"1 of 1 entities were looked at",
		">GLOBAL_RATE_LIMIT_THRESHOLD</td>",
		"2026-01-01 00:00:00 UTC",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if strings.Contains(body, "ZgotmplZ") || strings.Contains(body, "<script") {
		t.Error("the page holds what the template refused, or a script")
	}
	for i := range 10 {
		lim.Check(fmt.Sprint("k", i), 1) // some for each partition
	}
	c.Advance(1250 * time.Millisecond)
	body = get(newPage(lim, c), "/", "").Body.String()
	for _, want := range []string{
		">works</th><td><span class=\"good\">up</span></td>",
		">broken</th><td><span class=\"bad\">down</span> for 300ms: unreachable at connect<br><span class=\"quiet why\">nothing listens</span></td><td class=\"n\">never</td>",
		">300ms ago</time>",
		"<td>fleet</td><td class=\"n\">300ms ago</td>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("after a tick the page does not contain %q", want)
		}
	}
}

func TestAnEmptyPage(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	body := get(newPage(lim, c), "/", "").Body.String()
	if !strings.Contains(body, "No entity has a level.") || strings.Contains(body, "Dry run") {
		t.Error("the page of a limiter that was asked nothing")
	}
	if d := decode(t, newPage(lim, c)); d.Top == nil || d.Top.Entities == nil || len(d.Partitions) != 2 {
		t.Errorf("the document of a limiter that was asked nothing: %+v", d)
	}
}

// What a client puts into a key cannot become part of the page.
func TestKeysAreEscaped(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	for _, key := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=a>`, "a\u202eb", "\x00\xff", ""} {
		lim.Check(key, 50)
	}
	body := get(newPage(lim, c), "/", "").Body.String()
	for _, never := range []string{"<script", "<img", "\u202e", "\x00", "\xff"} {
		if strings.Contains(body, never) {
			t.Errorf("the page contains %q", never)
		}
	}
	for _, want := range []string{"&lt;script&gt;", `&#34;a\u202eb&#34;`, `&#34;\x00\xff&#34;`, `<th scope="row" class="key">&#34;&#34;</th>`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}

func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) {
		cfg.RedisURLs = []string{"redis://admin:hunter2@localhost:6379/0", "other=rediss://:hunter2@[::1]:6380"}
		cfg.CustomKeys = ratelimit.Overrides{"sk_live_hunter2": 7}
	})
	lim.Check("sk_live_hunter2", 3)
	masked := WithKeyText(func(key string) string { return key[:3] + "…" })
	for _, target := range []string{"/", "/?format=json"} {
		if body := get(newPage(lim, c, masked), target, "").Body.String(); strings.Contains(body, "hunter2") || !strings.Contains(body, "sk_…") {
			t.Errorf("%s shows a secret, or not what stands for it:\n%s", target, body)
		}
		if body := get(newPage(lim, c), target, "").Body.String(); strings.Contains(body, "admin") || strings.Contains(body, ":hunter2") || strings.Contains(body, "=hunter2") {
			t.Errorf("%s shows a password", target)
		}
	}
}

func TestTopIsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	for i := range 40 {
		lim.Check(fmt.Sprint("k", i), uint64(i+1))
	}
	for _, row := range []struct {
		opts []Option
		want int
	}{
		{nil, 20}, {[]Option{WithTop(3)}, 3}, {[]Option{WithTop(100)}, 40}, {[]Option{WithTop(5), WithTop(2)}, 2},
	} {
		if d := decode(t, newPage(lim, c, row.opts...)); len(d.Top.Entities) != row.want || d.Top.Entities[0].Key != "k39" {
			t.Errorf("%d entities, want %d: %+v", len(d.Top.Entities), row.want, d.Top.Entities)
		}
	}
	p := newPage(lim, c, WithTop(0))
	if d := decode(t, p); d.Top != nil || strings.Contains(get(p, "/", "").Body.String(), "Closest") {
		t.Errorf("top %+v, want none", d.Top)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	for _, row := range []struct {
		target, accept string
		status         int
		kind           string
	}{
		{"/", "", 200, "text/html; charset=utf-8"},
		{"/", "application/json", 200, "application/json"},
		{"/?format=html", "application/json", 200, "text/html; charset=utf-8"},
		{"/?format=json", "text/html", 200, "application/json"},
		{"/?format=xml", "", 400, "text/plain; charset=utf-8"},
		{"/?format=", "", 200, "text/html; charset=utf-8"},
	} {
		w := get(newPage(lim, c), row.target, row.accept)
		if got := w.Header().Get("Content-Type"); w.Code != row.status || got != row.kind {
			t.Errorf("%s, Accept %q: %d, %s; want %d, %s", row.target, row.accept, w.Code, got, row.status, row.kind)
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Vary") != "Accept" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: fields %v", row.target, w.Header())
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	s := httptest.NewServer(New(lim))
	defer s.Close()
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		r, err := http.NewRequest(method, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want || want == 405 && response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d, Allow %q; want %d", method, response.StatusCode, response.Header.Get("Allow"), want)
		}
	}
}

func TestThePageMayLoadNothing(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	w := get(newPage(lim, c), "/", "")
	if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; style-src 'sha256-") || got != policy {
		t.Errorf("policy %q", got)
	}
	// The browser hashes what stands between the tags, to the byte.
	if !strings.Contains(w.Body.String(), "<style>"+style+"</style>") {
		t.Error("the style is not what its hash is of")
	}
}

func TestAfterClose(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	lim.Check("ann", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lim.Close(ctx)
	d := decode(t, newPage(lim, c))
	if d.Units.Counted != 3 || d.Units.Undelivered != 0 || d.Units.Dropped.Closed+d.Units.Delivered != 3 {
		t.Errorf("units %+v", d.Units)
	}
}

func TestRequestsAtOnce(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	p := newPage(lim, c)
	want := get(p, "/", "").Body.String()
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 20 {
				if diff := cmp.Diff(want, get(p, "/", "").Body.String()); diff != "" {
					t.Errorf("not the same page: %s", diff)
				}
			}
		})
	}
	clients.Wait()
}

// A client that goes while another's request is looked after does not wait.
func TestAClientThatGoesDoesNotWait(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	p := newPage(lim, c)
	p.turn <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Body.Len() != 0 {
		t.Errorf("answer %q", w.Body)
	}
}
