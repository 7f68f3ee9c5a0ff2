// Command http is an HTTP API whose clients may each make ten requests a minute.
//
//	go run ./docs/examples/http
//
// Then ask it eleven times:
//
//	curl -i -H 'X-Api-Key: k1' http://127.0.0.1:8080/hello
//
// and look at http://127.0.0.1:8080/status. It counts in memory; with several
// processes, give all of them -redis redis://host:6379.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
	"github.com/hanzoai/limiters/ratelimit/statuspage"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	redis := flag.String("redis", "memory://", "`URL` of the Redis that all processes share")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("try: curl -i -H 'X-Api-Key: k1' http://%s/hello\nsee: http://%s/status\n", listener.Addr(), listener.Addr())
	if err := serve(ctx, listener, *redis); err != nil {
		log.Fatal(err)
	}
}

// serve answers requests until ctx ends, finishes those under way, and delivers
// what they counted.
func serve(ctx context.Context, listener net.Listener, redis string) error {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold, cfg.Inclusive = 10, true
	cfg.RedisURLs = []string{redis}
	lim, err := ratelimit.New(cfg)
	if err != nil {
		return err
	}
	handler, err := routes(lim)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Shutdown
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(end), lim.Close(end))
}

// routes limits the API, and leaves alone what operators ask for.
func routes(lim *ratelimit.Limiter) (http.Handler, error) {
	limit, err := httplimit.New(lim, httplimit.Prefixed("key:", httplimit.Header("X-Api-Key")))
	if err != nil {
		return nil, err
	}
	api := http.NewServeMux()
	api.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "hello")
	})

	mux := http.NewServeMux()
	mux.Handle("/", limit(api))
	mux.Handle("GET /status", statuspage.New(lim))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		lim.WritePrometheus(w)
	})
	return mux, nil
}
