// Command minimal is the smallest service with a limit: 60 requests a minute for each
// client address, a path for probes, and an end that loses no count.
//
//	go run ./docs/examples/minimal
package main

import (
	"context"
	"log"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

func main() {
	cfg := ratelimit.DefaultConfig()
	cfg.Window, cfg.GlobalThreshold, cfg.Inclusive = ratelimit.WindowSliding, 60, true // per minute and client, of the fleet
	cfg.RedisURLs = []string{"memory://"}                                              // in production "redis://host:6379", one or more
	lim, err := ratelimit.New(cfg)
	if err != nil {
		log.Fatal(err)
	}
	client, err := httplimit.ClientIP(httplimit.Proxies{}) // behind a load balancer: say which
	if err != nil {
		log.Fatal(err)
	}
	limit, err := httplimit.New(lim, client, httplimit.WithSkip(httplimit.Unlimited("/healthz")))
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // 200: Redis is no part of it
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello\n")) })
	server := &http.Server{Addr: "127.0.0.1:8080", Handler: limit(mux)}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	go func() { log.Print(server.ListenAndServe()) }() // ends with Shutdown
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	server.Shutdown(end)
	if err := lim.Close(end); err != nil { // delivers what was counted
		log.Print(err)
	}
}
