// Prometheus serves the metrics of a limiter and those of a client_golang registry
// in one endpoint:
//
//	go run .
//	curl -s http://127.0.0.1:8080/hello?who=me; curl -s http://127.0.0.1:8080/metrics
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hanzoai/limiters/ratelimit"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.RedisURLs = []string{"memory://"} // one process on its own; in production redis://…
	lim, err := ratelimit.New(cfg)
	if err != nil {
		return err
	}

	server := &http.Server{Addr: "127.0.0.1:8080", Handler: newHandler(lim, prometheus.NewRegistry()), ReadHeaderTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }() // Shutdown ends it
	log.Printf("listening on http://%s", server.Addr)
	select {
	case err := <-served:
		return errors.Join(err, lim.Close(context.Background()))
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(closing), lim.Close(closing)) // no more requests, then the counts
}

// newHandler serves /hello, limited by its parameter who, and /metrics.
func newHandler(lim *ratelimit.Limiter, registry *prometheus.Registry) http.Handler {
	served := prometheus.NewCounter(prometheus.CounterOpts{Name: "hello_served_total", Help: "Greetings served."})
	registry.MustRegister(served)

	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		if !lim.Allow(r.URL.Query().Get("who")) {
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		served.Inc()
		fmt.Fprintln(w, "hello")
	})
	// One endpoint: the registry's metrics, then the limiter's, in whichever format
	// the scraper asks for.
	all := prometheus.Gatherers{registry, gather(lim.WritePrometheus)}
	mux.Handle("/metrics", promhttp.HandlerFor(all, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}
