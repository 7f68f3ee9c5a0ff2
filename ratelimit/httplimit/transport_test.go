package httplimit

// This file tests the client's side.

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
)

// A sender notes what a Transport sends.
type sender struct {
	clock  *clock.Fake
	sent   []string
	at     []time.Duration
	closed bool
	err    error
}

func (s *sender) RoundTrip(r *http.Request) (*http.Response, error) {
	wall, _ := s.clock.Now()
	s.sent, s.at = append(s.sent, r.URL.Host), append(s.at, time.Unix(0, wall).Sub(start))
	if s.err != nil {
		return nil, s.err
	}
	return httptest.NewRecorder().Result(), nil
}

func (s *sender) CloseIdleConnections() { s.closed = true }

// pump lets the clock run while a function waits.
func pump(lim *ratelimit.Limiter, c *clock.Fake, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if lim.Stats().Waiting > 0 {
			c.Advance(100 * time.Millisecond)
		}
		runtime.Gosched()
	}
}

func TestATransportKeepsTheRate(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, func(cfg *ratelimit.Config) {
		cfg.Window, cfg.Inclusive = ratelimit.WindowFixed, true
	})
	base := &sender{clock: c}
	client := &http.Client{Transport: &Transport{Limiter: lim, Base: base}}
	pump(lim, c, func() {
		for i := range 10 {
			host := "API.example:8080"
			if i == 2 {
				host = "other.example"
			}
			resp, err := client.Get("http://" + host + "/path")
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		}
	})
	for i, at := range base.at { // four a minute; the third one asks another host
		want := time.Duration(max(0, i-1)/4) * time.Minute
		if at < want || at > want+200*time.Millisecond {
			t.Errorf("request %d was sent at %v, want %v", i, at, want)
		}
	}
	if client.CloseIdleConnections(); !base.closed || len(base.sent) != 10 {
		t.Errorf("closed %v, sent %d", base.closed, len(base.sent))
	}
	if got := lim.Peek("api.example:8080").Level(); got != 1 {
		t.Errorf("level %v in the third minute, want 1", got)
	}
}

// A body tells whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func TestATransportThatMustNotSend(t *testing.T) {
	t.Parallel()
	lim, c := newLimiter(t, nil)
	lim.Check("full.example", 4)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	late, cancelLate := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancelLate()
	failing := errors.New("who is it?")
	for i, row := range []struct {
		t    Transport
		ctx  context.Context
		is   error
		text string
	}{
		{Transport{}, context.Background(), nil, "no Limiter"},
		{Transport{Limiter: lim}, ended, context.Canceled, ""},
		{Transport{Limiter: lim, Cost: func(*http.Request) uint64 { return 99 }}, late, ratelimit.ErrNever, ""},
		{Transport{Limiter: lim, Key: func(*http.Request) (string, error) { return "", failing }}, context.Background(), failing, ""},
		{Transport{Limiter: lim, Key: func(*http.Request) (string, error) { return "", nil }}, context.Background(), ErrEmptyKey, ""},
	} {
		base := &sender{clock: c}
		row.t.Base = base
		b := &body{Reader: strings.NewReader("text")}
		r := httptest.NewRequest("POST", "http://full.example/", b).WithContext(row.ctx)
		resp, err := row.t.RoundTrip(r)
		if resp != nil || err == nil || row.is != nil && !errors.Is(err, row.is) || !strings.Contains(err.Error(), row.text) {
			t.Errorf("row %d: %v", i, err)
		}
		if !b.closed || len(base.sent) != 0 {
			t.Errorf("row %d: closed %v, sent %v", i, b.closed, base.sent)
		}
	}
	failed := Transport{Limiter: lim, Base: &sender{clock: c, err: failing}}
	if _, err := failed.RoundTrip(httptest.NewRequest("GET", "http://new.example/", nil)); !errors.Is(err, failing) {
		t.Errorf("RoundTrip = %v", err)
	}
	if got := lim.Peek("new.example").Level(); got != 1 {
		t.Errorf("level %v after a request that failed, want 1", got)
	}
	if (&Transport{}).base() != http.DefaultTransport {
		t.Error("no default transport")
	}
}
