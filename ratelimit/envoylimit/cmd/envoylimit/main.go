// Command envoylimit is a server of Envoy's rate limit service that decides in memory. It takes
// the place of github.com/envoyproxy/ratelimit: the same files, the same environment, the same
// answers. docs/envoy.md tells how to run it.
//
//	REDIS_SOCKET_TYPE=tcp REDIS_URL=127.0.0.1:6379 RUNTIME_ROOT=/srv/ratelimit envoylimit
//
// With -check it reads the configuration, says what is wrong with it, and ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/envoylimit"
)

const (
	// A small heap would be collected many times a second for what requests leave behind.
	collectAt = 400

	drainTime = 10 * time.Second // for requests under way, when it stops
	closeTime = 5 * time.Second  // for what is counted and not delivered, after that
)

func main() {
	flags := flag.NewFlagSet("envoylimit", flag.ContinueOnError)
	check := flags.Bool("check", false, "read the rules, say what is wrong with them, and end")
	folder := flags.String("config_dir", "", "read rules from this folder instead of RUNTIME_ROOT/RUNTIME_SUBDIRECTORY/RUNTIME_APPDIRECTORY")
	switch err := flags.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2)
	case flags.NArg() > 0:
		fmt.Fprintf(os.Stderr, "envoylimit: unknown argument %q\n", flags.Arg(0))
		os.Exit(2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, environment(), *folder, *check, os.Stderr); err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintln(os.Stderr, "envoylimit:", strings.TrimPrefix(strings.TrimRight(line, "\n"), "envoylimit: "))
		}
		os.Exit(1)
	}
}

func environment() map[string]string {
	environ := map[string]string{}
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		environ[name] = value
	}
	return environ
}

// run serves until ctx ends, and then stops in order: no new requests, those under way, what is
// counted.
func run(ctx context.Context, environ map[string]string, path string, checkOnly bool, log io.Writer) error {
	s, err := readSettings(environ)
	if err != nil {
		return err
	}
	folder := s.folder()
	if path != "" {
		folder.Path = path
	}
	if checkOnly {
		return check(folder, log)
	}
	logger := s.logger(log)
	for _, line := range passedOver(environ) {
		logger.Warn(line)
	}
	limiter, options, closeRedis, err := s.limiter(environ)
	defer closeRedis()
	if err != nil {
		return err
	}
	set := metrics.NewSet()
	cfg := s.config()
	cfg.Limiter, cfg.Logger = limiter, logger
	cfg.Options = append(options, ratelimit.WithMetricsSet(set))
	service, err := envoylimit.New(cfg)
	if err != nil {
		return err
	}
	if err := service.Load(folder); err != nil {
		if !s.ForceStart {
			return errors.Join(err, closeService(service))
		}
		logger.Error("started without rules (FORCE_START_WITHOUT_INITIAL_CONFIG)", "error", err)
	}
	served := (&server{settings: s, service: service, set: set, logger: logger, folder: folder}).serve(ctx)
	return errors.Join(served, closeService(service))
}

func closeService(service *envoylimit.Service) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return service.Close(ctx)
}

// check says what is wrong with the rules of a folder.
func check(folder envoylimit.Folder, log io.Writer) error {
	files, err := folder.Read()
	if err != nil {
		return err
	}
	rules, warnings, err := envoylimit.ReadRules(files, folder.Merge)
	for _, warning := range warnings {
		fmt.Fprintln(log, "warning:", warning)
	}
	if err == nil {
		fmt.Fprint(log, rules)
	}
	return err
}

func (s *settings) logger(w io.Writer) *slog.Logger {
	level, _ := levelOf(s.LogLevel) // checked when it was read
	options := &slog.HandlerOptions{Level: level}
	if strings.EqualFold(s.LogFormat, "json") {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// A server is the running command.
type server struct {
	settings settings
	service  *envoylimit.Service
	set      *metrics.Set
	logger   *slog.Logger
	folder   envoylimit.Folder
}

// healthName is what the original calls itself in the health service.
const healthName = "ratelimit"

func (s *server) serve(ctx context.Context) error {
	grpcServer, err := s.settings.grpcServer()
	if err != nil {
		return err
	}
	s.service.Register(grpcServer)
	healthServer := health.NewServer()
	healthpb.RegisterHealthServer(grpcServer, healthServer)
	healthy := func() bool {
		rules := s.service.Rules()
		return ctx.Err() == nil && (!s.settings.HealthyWithConfig || rules != nil && len(rules.Domains()) > 0)
	}
	at := func(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	handlers := map[string]http.Handler{
		at(s.settings.Host, s.settings.Port):           public(s.service, healthy),
		at(s.settings.DebugHost, s.settings.DebugPort): pages(s.service, s.set),
	}
	if s.settings.UsePrometheus {
		mux := http.NewServeMux()
		mux.HandleFunc(s.settings.PrometheusPath, serveMetrics(s.service, s.set))
		handlers[s.settings.PrometheusAddr] = mux
	}
	listener, err := s.settings.listen()
	if err != nil {
		return err
	}
	failed := make(chan error, len(handlers)+1)
	for address, handler := range handlers {
		pageServer := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		pageListener, err := net.Listen("tcp", address)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		defer func() { _ = pageServer.Close() }()
		go func() { failed <- pageServer.Serve(pageListener) }() // ended by Close
		s.logger.Info("serving HTTP", "address", pageListener.Addr().String())
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	go s.service.Follow(following, s.folder, 0)          // ended by unfollow
	go s.tellHealth(following, healthServer, healthy)    // ended by unfollow
	go func() { failed <- grpcServer.Serve(listener) }() // ended by drain
	s.logger.Info("serving gRPC", "address", listener.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = nil
	}
	healthServer.Shutdown()
	drain(grpcServer)
	return err
}

// tellHealth keeps the health service in step, until ctx ends.
func (s *server) tellHealth(ctx context.Context, server *health.Server, healthy func() bool) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		status := healthpb.HealthCheckResponse_NOT_SERVING
		if healthy() {
			status = healthpb.HealthCheckResponse_SERVING
		}
		server.SetServingStatus("", status)
		server.SetServingStatus(healthName, status)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// drain ends a server when its requests are answered, or after drainTime.
func drain(server *grpc.Server) {
	timer := time.AfterFunc(drainTime, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}
