// Command fleet shows two processes that share one limit through a Redis on this
// machine.
//
//	go run ./docs/examples/fleet
//
// It starts itself twice. Each process offers three times the limit of 200 units a
// second for five seconds and prints what it let through, second by second: in the
// first, each decides alone; from then on they share. At the end both are added up.
//
// The Redis is the one of -redis, else a redis-server or valkey-server that it
// starts and ends again, else one that is embedded.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	limit   = 200         // units a second, of the fleet
	window  = time.Second // in which they count
	offered = 3 * limit   // units a second, by each process
)

func main() {
	redis := flag.String("redis", "", "`URL` of the Redis to share")
	d := flag.Duration("duration", 5*time.Second, "how long to offer load")
	node := flag.String("node", "", "be a process of the fleet, of this `name`")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *node != "" {
		if err := beNode(ctx, *node, *redis, *d, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := beFleet(ctx, *redis, *d, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// beFleet starts two processes on one Redis, and adds up what they report.
func beFleet(ctx context.Context, redis string, d time.Duration, out io.Writer) error {
	if redis == "" {
		url, what, stop, err := startRedis()
		if err != nil {
			return err
		}
		defer stop()
		redis = url
		fmt.Fprintln(out, "redis:", what)
	}
	var fleet sync.WaitGroup
	var mu sync.Mutex
	var sum report
	var failed error
	for _, name := range []string{"a", "b"} {
		fleet.Go(func() {
			err := startNode(ctx, name, redis, d, func(r report) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(out, "node %s: second %d: %d of %d units passed\n", r.Node, r.Second, r.Passed, r.Offered)
				if r.Second > 1 { // they know of each other
					sum.Passed += r.Passed
					sum.Offered += r.Offered
					sum.Second = max(sum.Second, r.Second)
				}
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	fleet.Wait()
	if failed == nil && sum.Second > 1 {
		fmt.Fprintf(out, "both, after the first second: %d units a second passed of a limit of %d\n", sum.Passed/uint64(sum.Second-1), limit)
	}
	return failed
}

// startNode runs this program as a node, and hands on what it reports until it ends.
func startNode(ctx context.Context, name, redis string, d time.Duration, tell func(report)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, self, "-node", name, "-redis", redis, "-duration", d.String())
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Stderr = os.Stderr
	lines, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		var r report
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			log.Printf("node %s says %q", name, scanner.Text())
			continue
		}
		tell(r)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	return nil
}
