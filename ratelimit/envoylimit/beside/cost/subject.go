package main

// This file sends requests to one service and measures what they cost.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/gomodule/redigo/redis"
	"google.golang.org/grpc"

	"github.com/hanzoai/limiters/ratelimit/envoylimit/beside/servers"
)

const (
	connections = 64
	descriptors = 1000

	clockTicks = 100 // of /proc, per second, on every Linux that Go runs on
)

// A subject is a service and the connections to it.
type subject struct {
	original    bool
	server      *servers.Server
	store       redis.Conn
	connections []*grpc.ClientConn
	requests    []*pb.RateLimitRequest
}

func newSubject(server *servers.Server, store redis.Conn, original bool) (*subject, error) {
	s := &subject{original: original, server: server, store: store}
	for range connections {
		connection, err := server.Dial()
		if err != nil {
			return nil, err
		}
		s.connections = append(s.connections, connection)
	}
	for i := range descriptors {
		s.requests = append(s.requests, &pb.RateLimitRequest{
			Domain: "cost", Descriptors: []*ratelimitv3.RateLimitDescriptor{{
				Entries: []*ratelimitv3.RateLimitDescriptor_Entry{{Key: "user", Value: "user-" + strconv.Itoa(i)}},
			}},
		})
	}
	return s, nil
}

func (s *subject) close() {
	for _, connection := range s.connections {
		_ = connection.Close()
	}
}

// measure sends requests on all connections at once, one at a time on each: at a rate per second
// together, or without a pause if that is 0.
func (s *subject) measure(length time.Duration, rate float64) (r result, err error) {
	before, err := s.reading()
	if err != nil {
		return r, err
	}
	began := time.Now()
	latencies := make([][]time.Duration, connections)
	errs := make([]error, connections)
	var calling sync.WaitGroup
	for i, connection := range s.connections {
		calling.Go(func() {
			latencies[i], errs[i] = s.call(connection, i, began, length, rate/connections)
		})
	}
	calling.Wait()
	took := time.Since(began)
	after, err := s.reading()
	if err := errors.Join(append(errs, err)...); err != nil {
		return r, err
	}
	all := slices.Concat(latencies...)
	if len(all) == 0 {
		return r, errors.New("no request was answered")
	}
	slices.Sort(all)
	n := float64(len(all))
	return result{
		requests: len(all), rate: n / took.Seconds(), cpu: (after.cpu - before.cpu) / n * 1e6,
		p50: all[len(all)/2], p99: all[len(all)*99/100], commands: float64(after.commands-before.commands) / n * 1000,
	}, nil
}

// call sends the requests of one connection. Where it has a rate and is late it catches up, without
// counting the time that it was late as the service's.
func (s *subject) call(connection *grpc.ClientConn, place int, began time.Time, length time.Duration, rate float64) (latencies []time.Duration, err error) {
	client := pb.NewRateLimitServiceClient(connection)
	for turn := 0; time.Since(began) < length; turn++ {
		if rate > 0 {
			due := time.Duration((float64(turn) + float64(place)/connections) / rate * float64(time.Second))
			if due > length {
				break
			}
			time.Sleep(time.Until(began.Add(due)))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		sent := time.Now()
		_, err := client.ShouldRateLimit(ctx, s.requests[(turn*connections+place)%descriptors])
		latency := time.Since(sent)
		cancel()
		if err != nil {
			return nil, err
		}
		latencies = append(latencies, latency)
	}
	return latencies, nil
}

// A reading is what a service has cost so far.
type reading struct {
	cpu      float64 // seconds
	commands int     // that clients sent to Redis
}

func (s *subject) reading() (r reading, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.server.Pid()))
	if err != nil {
		return r, err
	}
	// The name of the program, in parentheses, may hold spaces.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, place := range []int{11, 12} { // utime, stime
		ticks, err := strconv.ParseFloat(fields[place], 64)
		if err != nil {
			return r, err
		}
		r.cpu += ticks / clockTicks
	}
	stats, err := redis.String(s.store.Do("INFO", "commandstats"))
	if err != nil {
		return r, err
	}
	r.commands = commandsIn(stats, s.original)
	return r, nil
}

var callsOf = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)`)

// commandsIn counts what the clients of one service sent. Both share the server, and Redis counts what scripts
// call among the rest. The original sends pairs of INCRBY and EXPIRE, and our script calls no EXPIRE; ours
// sends scripts, and what a connection begins with.
func commandsIn(stats string, original bool) (sum int) {
	for _, line := range callsOf.FindAllStringSubmatch(stats, -1) {
		calls, _ := strconv.Atoi(line[2])
		switch name := line[1]; {
		case original && name == "expire":
			sum += 2 * calls
		case !original && !scripted[name] && name != "info":
			sum += calls
		}
	}
	return sum
}

// scripted are the commands that our script calls, and those that the original sends.
var scripted = map[string]bool{
	"get": true, "mget": true, "set": true, "exists": true, "incrby": true, "pexpire": true, "time": true, "expire": true,
}
