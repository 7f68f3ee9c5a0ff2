// Command gateway is a reverse proxy that limits by plans from a file.
//
//	go run ./docs/examples/gateway
//
// Then ask it as a client of each plan, and log in more than five times:
//
//	curl -i -H 'X-Api-Key: free-1' http://127.0.0.1:8080/v1/search
//	curl -i -H 'X-Api-Key: pro-1' http://127.0.0.1:8080/v1/search
//	curl -i -X POST http://127.0.0.1:8080/login
//
// and look at http://127.0.0.1:8080/status. Change docs/examples/gateway/plans.yaml while
// it runs: the log says what changed. It counts in memory; several processes share
// -redis redis://host:6379.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
	_ "time/tzdata" // a file may name time zones

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/plans"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	file := flag.String("plans", filepath.Join("docs", "examples", "gateway", "plans.yaml"), "`file` of plans")
	redis := flag.String("redis", "memory://", "`URL` of the Redis that all processes share")
	upstream := flag.String("upstream", "", "`URL` to pass requests on to; without it a service of its own answers")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("try: curl -i -H 'X-Api-Key: free-1' http://%s/v1/search\nsee: http://%s/status\n", listener.Addr(), listener.Addr())
	if err := serve(ctx, listener, *file, *redis, *upstream); err != nil {
		log.Fatal(err)
	}
}

// serve passes requests on until ctx ends, finishes those under way, and delivers what they
// counted.
func serve(ctx context.Context, listener net.Listener, file, redis, upstream string) error {
	next, err := backend(upstream)
	if err != nil {
		return err
	}
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{redis}
	p, err := plans.Open(file, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	reloads := make(chan error, 1)
	go func() { reloads <- p.Run(ctx, 2*time.Second) }() // ends with ctx

	server := &http.Server{Handler: routes(p, next), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with Shutdown
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	cancel()
	<-reloads
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(end), p.Close(end))
}

// routes limits what is passed on, and leaves alone what operators ask for.
func routes(p *plans.Plans, next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", p.Middleware(next))
	mux.Handle("GET /status", p.Page())
	return mux
}

// backend is what requests reach.
func backend(upstream string) (http.Handler, error) {
	if upstream == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "this is", r.Method, r.URL.Path)
		}), nil
	}
	target, err := url.Parse(upstream)
	if err != nil || target.Host == "" {
		return nil, fmt.Errorf("the upstream %q is no URL with a host", upstream)
	}
	return &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() },
		ErrorLog: log.New(os.Stderr, "", 0),
	}, nil
}
