// Command cost runs the rate limit service of envoylimit and the original with one Redis, sends both
// the same requests, and prints what they cost, ours divided by theirs: a line "ratio <name> <value>" each.
//
// In every round the original answers 64 connections as fast as it can, and then ours gets as many requests
// per second as that. Rounds that begin with ours take the rate of the round before. CPU time
// is the process's own, from /proc; latencies are the callers'; commands are what clients
// sent to Redis: a script is one, whatever it calls. It needs redis-server and Linux.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit/envoylimit/beside/servers"
)

const rules = `domain: cost
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 600}
`

func main() {
	rounds := flag.Int("rounds", 5, "how often each service is measured, in turns")
	length := flag.Duration("time", 4*time.Second, "how long each time")
	flag.Parse()
	if err := run(*rounds, *length, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

// A result is what one service did under load.
type result struct {
	requests int
	rate     float64 // answered per second
	cpu      float64 // seconds per million requests
	p50, p99 time.Duration
	commands float64 // per thousand requests
}

func run(rounds int, length time.Duration, out io.Writer) (err error) {
	if rounds < 1 || length <= 0 {
		return errors.New("want at least one round, and some time")
	}
	folder, err := os.MkdirTemp("", "cost")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	address, stop, err := startRedis(folder)
	if err != nil {
		return err
	}
	defer stop()
	store, err := redis.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	if err := servers.WriteRules(folder, rules); err != nil {
		return err
	}
	var services [2]*subject
	for i, program := range []string{servers.Theirs, servers.Ours} {
		path, err := servers.Build(folder, program)
		if err != nil {
			return err
		}
		server, err := servers.Start(path, folder, address)
		if err != nil {
			return err
		}
		defer func() { _ = server.Stop() }()
		if services[i], err = newSubject(server, store, program == servers.Theirs); err != nil {
			return err
		}
		defer services[i].close()
	}
	theirs, ours := services[0], services[1]
	// One round that does not count: connections, caches, and the rate that the first round is begun with.
	first, err := theirs.measure(length/2, 0)
	if err != nil {
		return err
	}
	if _, err = ours.measure(length/2, first.rate); err != nil {
		return err
	}
	rate := first.rate
	if first.commands == 0 {
		return errors.New("the original asks Redis nothing: it has no rules")
	}
	var all [2][]result
	for round := range rounds {
		order := []int{0, 1}
		if round%2 == 1 {
			order = []int{1, 0}
		}
		for _, i := range order {
			pace := rate
			if i == 0 {
				pace = 0
			}
			r, err := services[i].measure(length, pace)
			if err != nil {
				return err
			}
			if i == 0 {
				rate = r.rate
			}
			all[i] = append(all[i], r)
			_, _ = fmt.Fprintf(out, "%-6s %7d requests, %6.0f/s, CPU %5.1f µs each, p50 %8v, p99 %8v, %7.1f commands per 1,000\n",
				[]string{"theirs", "ours"}[i], r.requests, r.rate, r.cpu, r.p50.Round(time.Microsecond), r.p99.Round(time.Microsecond), r.commands)
		}
	}
	for _, figure := range []struct {
		name string
		of   func(result) float64
	}{
		{"envoy_cpu", func(r result) float64 { return r.cpu }},
		{"envoy_p99", func(r result) float64 { return float64(r.p99) }},
		{"envoy_redis_commands", func(r result) float64 { return r.commands }},
	} {
		_, _ = fmt.Fprintf(out, "ratio %s %.4f\n", figure.name, median(all[1], figure.of)/median(all[0], figure.of))
	}
	return nil
}

func median(results []result, of func(result) float64) float64 {
	values := make([]float64, len(results))
	for i, r := range results {
		values[i] = of(r)
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// startRedis starts a server without persistence. stop ends it.
func startRedis(folder string) (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address = l.Addr().String()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if program, err = exec.LookPath("valkey-server"); err != nil {
			return "", nil, errors.New("it needs redis-server or valkey-server")
		}
	}
	server := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", folder)
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", address); err == nil {
			return address, stop, connection.Close()
		}
		if time.Now().After(deadline) {
			stop()
			return "", nil, fmt.Errorf("%s does not answer at %s", strings.Join(server.Args, " "), address)
		}
	}
}
