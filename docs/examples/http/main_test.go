package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheAPI(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, "memory://") }()

	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path, key string) (status int, fields http.Header, body string) {
		t.Helper()
		r, err := http.NewRequest("GET", "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header, string(text)
	}

	limited := 0
	for range 30 { // more than enough, should a window begin meanwhile
		switch status, fields, body := get("/hello", "k1"); {
		case status == 200 && body == "hello\n":
		case status == 429 && fields.Get("Retry-After") != "":
			limited++
		default:
			t.Fatalf("status %d, fields %v, body %q", status, fields, body)
		}
	}
	if limited == 0 || limited > 20 {
		t.Errorf("%d of 30 requests were limited, want up to 20 and some", limited)
	}
	for path, want := range map[string]string{"/status": "key:k1", "/metrics": "global_rate_limiter_eval_counts_total"} {
		if status, _, body := get(path, ""); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: status %d without %q", path, status, want)
		}
	}
	if status, _, _ := get("/hello", ""); status != 400 {
		t.Errorf("without a key: status %d, want 400", status)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestABadAddressIsAnError(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := serve(t.Context(), listener, "http://nowhere"); err == nil || !strings.Contains(err.Error(), "RedisURLs") {
		t.Errorf("serve: %v", err)
	}
}
