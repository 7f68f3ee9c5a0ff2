package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start serves the example with a copy of its file, and returns its address and the copy.
func start(t *testing.T, upstream string) (base, file string) {
	t.Helper()
	text, err := os.ReadFile("plans.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "plans.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, listener, file, "memory://", upstream) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String(), file
}

func ask(t *testing.T, method, url, key string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestGateway(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "upstream ", r.URL.Path) }))
	defer upstream.Close()
	base, file := start(t, upstream.URL)
	passes := func(method, path, key string, n int) (passed int) {
		for range n {
			switch status, body := ask(t, method, base+path, key); {
			case status == 200 && body == "upstream "+path:
				passed++
			case status != 429:
				t.Errorf("%s %s as %s: %d %s", method, path, key, status, body)
			}
		}
		return passed
	}
	if got := passes("POST", "/v1/export", "free-1", 3); got != 2 {
		t.Errorf("%d exports pass, want 2: twenty units an hour", got)
	}
	if got := passes("POST", "/v1/export", "pro-1", 20); got != 20 {
		t.Errorf("%d exports of a client of the plan pro pass, want 20", got)
	}
	if got := passes("POST", "/login", "", 8); got != 5 {
		t.Errorf("%d log-ins pass, want 5", got)
	}
	if status, _ := ask(t, "GET", base+"/v1/x", "stolen-1"); status != 403 {
		t.Errorf("a blocked key: %d", status)
	}
	if status, body := ask(t, "GET", base+"/status?limit=per_hour", ""); status != 200 || !strings.Contains(body, "pro-1") {
		t.Errorf("status page: %d %s", status, body)
	}
	if status, body := ask(t, "GET", base+"/status", ""); status != 200 || !strings.Contains(body, "POST /v1/export") {
		t.Errorf("page: %d %s", status, body)
	}
	if status, body := ask(t, "GET", base+"/status?limit=none", ""); status != 404 || !strings.Contains(body, "per_hour") {
		t.Errorf("status page of nothing: %d %s", status, body)
	}

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte(strings.Replace(string(text), "keys:", "keys:\n  free-1: pro", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); passes("POST", "/v1/export", "free-1", 1) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the file was not reloaded")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestWithoutAnUpstreamItAnswersItself(t *testing.T) {
	base, _ := start(t, "")
	if status, body := ask(t, "GET", base+"/v1/x", "pro-1"); status != 200 || body != "this is GET /v1/x\n" {
		t.Errorf("%d %s", status, body)
	}
}

func TestWhatItCannotBeStartedWith(t *testing.T) {
	if err := serve(t.Context(), nil, "gone.yaml", "memory://", ""); err == nil || !strings.Contains(err.Error(), "gone.yaml") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := serve(t.Context(), nil, "plans.yaml", "memory://", "nowhere"); err == nil || !strings.Contains(err.Error(), `"nowhere"`) {
		t.Errorf("an upstream that is none: %v", err)
	}
}
