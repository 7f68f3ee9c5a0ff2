package main

// This file serves HTTP: requests as JSON, health, metrics, and pages for people.

import (
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"

	"github.com/VictoriaMetrics/metrics"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/hanzoai/limiters/ratelimit/envoylimit"
	"github.com/hanzoai/limiters/ratelimit/statuspage"
)

// maxBody bounds a request that comes as JSON.
const maxBody = 1 << 20

// public is what PORT serves.
func public(service *envoylimit.Service, healthy func() bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		if !healthy() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "OK")
	})
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) { answerJSON(w, r, service) })
	return mux
}

// answerJSON answers who cannot speak gRPC.
func answerJSON(w http.ResponseWriter, r *http.Request, service *envoylimit.Service) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var request pb.RateLimitRequest
	if err == nil {
		err = protojson.Unmarshal(body, &request)
	}
	var response *pb.RateLimitResponse
	if err == nil {
		response, err = service.ShouldRateLimit(r.Context(), &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	text, err := protojson.Marshal(response)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if response.GetOverallCode() == pb.RateLimitResponse_OVER_LIMIT {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_, _ = w.Write(text)
}

// pages are what DEBUG_PORT serves.
func pages(service *envoylimit.Service, set *metrics.Set) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", serveMetrics(service, set))
	mux.HandleFunc("/rlconfig", func(w http.ResponseWriter, _ *http.Request) {
		if rules := service.Rules(); rules != nil {
			_, _ = io.WriteString(w, rules.String())
		}
	})
	mux.HandleFunc("/status/{window}", func(w http.ResponseWriter, r *http.Request) {
		for _, l := range service.Limiters() {
			if l.Config().Scope == r.PathValue("window") {
				statuspage.New(l).ServeHTTP(w, r)
				return
			}
		}
		http.NotFound(w, r)
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>envoylimit</title><ul>\n<li><a href=/metrics>metrics</a>\n<li><a href=/rlconfig>rules</a>\n")
		for _, l := range service.Limiters() {
			_, _ = fmt.Fprintf(w, "<li><a href=/status/%[1]s>status: %[1]s</a>\n", l.Config().Scope)
		}
		_, _ = io.WriteString(w, "<li><a href=/debug/pprof/>profiles</a>\n</ul>\n")
	})
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func serveMetrics(service *envoylimit.Service, set *metrics.Set) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		service.WritePrometheus(w)
		set.WritePrometheus(w)
		metrics.WriteProcessMetrics(w)
	}
}
