package httplimit

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that speaks HTTP/1.1 or HTTP/2 and returns it with a
// client.
func serve(t *testing.T, h http.Handler, http2 bool) (*httptest.Server, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	if http2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, s.Client()
}

// get requests url as a user, who may be "", and returns the response and its body.
func get(client *http.Client, url, user string) (*http.Response, string, error) {
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return nil, "", err
	}
	if user != "" {
		request.Header.Set("X-User", user)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, string(body), err
}

func TestOverTheWire(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		http2 bool
		proto string
	}{{false, "HTTP/1.1"}, {true, "HTTP/2.0"}} {
		t.Run(row.proto, func(t *testing.T) {
			t.Parallel()
			lim, _ := newLimiter(t, nil)
			s, client := serve(t, newMiddleware(t, lim, WithFields(RateLimit|XRateLimit))(ok), row.http2)
			for i := range 3 {
				r, body, err := get(client, s.URL, "ann")
				if err != nil {
					t.Fatal(err)
				}
				equal(t, "protocol", r.Proto, row.proto)
				equal(t, "answer", fmt.Sprint(r.StatusCode, " ", body), "200 ok")
				equal(t, "RateLimit", r.Header.Values("RateLimit"), []string{fmt.Sprintf(`"default";r=%d;t=%s`, 2-i, whole(lim.WaitFor("ann", uint64(3-i))))})
			}
			r, body, err := get(client, s.URL, "ann")
			if err != nil {
				t.Fatal(err)
			}
			wait := whole(lim.WaitFor("ann", 1))
			equal(t, "status", r.StatusCode, 429)
			equal(t, "fields", fields(r), map[string][]string{
				fieldRetryAfter: {wait}, fieldPolicy: {`"default";q=3;w=60`}, fieldRateLimit: {`"default";r=0;t=` + wait},
				fieldXLimit: {"3"}, fieldXRemaining: {"0"}, fieldXReset: {"120"},
			})
			if len(body) == 0 || r.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("body %q of type %q", body, r.Header.Get("Content-Type"))
			}
			if r, _, err = get(client, s.URL, ""); err != nil || r.StatusCode != 400 {
				t.Errorf("without a key: %v, %v", r, err)
			}
		})
	}
}

// No number of requests at once gets one too many through.
func TestOverTheWireAtOnce(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		lim, _ := newLimiter(t, func(cfg *ratelimit.Config) { cfg.GlobalThreshold = 26 })
		var reached atomic.Int64
		h := newMiddleware(t, lim)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
		s, client := serve(t, h, http2)
		var clients sync.WaitGroup
		var passed, limited, failed atomic.Int64
		for range 8 {
			clients.Go(func() {
				for range 20 {
					switch r, _, err := get(client, s.URL, "ann"); {
					case err != nil:
						failed.Add(1)
					case r.StatusCode == 200:
						passed.Add(1)
					case r.StatusCode == 429:
						limited.Add(1)
					}
				}
			})
		}
		clients.Wait()
		equal(t, "passed, reached, limited, failed",
			[]int64{passed.Load(), reached.Load(), limited.Load(), failed.Load()}, []int64{25, 25, 135, 0})
	}
}

func TestClientIPOverTheWire(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	key, err := ClientIP(Proxies{Trusted: []string{"127.0.0.0/8", "::1"}})
	if err != nil {
		t.Fatal(err)
	}
	limit, err := New(lim, key)
	if err != nil {
		t.Fatal(err)
	}
	s, client := serve(t, limit(ok), false)
	for i, row := range []struct {
		forwarded string
		status    int
	}{
		{"203.0.113.7", 200},
		{"1.1.1.1, 203.0.113.7", 200},
		{"2.2.2.2, 203.0.113.7:99", 200},
		{"3.3.3.3, 203.0.113.7", 429},
		{"203.0.113.8", 200},
		{"203.0.113.8, unknown", 400},
	} {
		request, err := http.NewRequest("GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", row.forwarded)
		r, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		equal(t, fmt.Sprintf("row %d (%s): status", i, row.forwarded), r.StatusCode, row.status)
	}
}
