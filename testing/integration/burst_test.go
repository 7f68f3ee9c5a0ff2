// This file sends a burst through several processes on one real Redis.

package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// The burst: 4.5 times what a window allows, within a second.
const (
	burstNodes     = 3
	burstThreshold = 600
	burstWindow    = 10 * time.Second
	burstRequests  = 2700
	burstWithin    = time.Second
	burstRuns      = 5
	burstMost      = 1.4 // thresholds, at the best of the runs

	// burstPause is how long a partition takes to save up the scripts that a burst of a
	// key below 80 % of its threshold takes.
	burstPause = 3 * time.Second
)

// burstHidden is how many units the fleet may hold back however quickly it syncs: each
// node its part, which is a 32nd of its share of the threshold, and two units at least.
const burstHidden = burstThreshold/32 + 2*burstNodes

// A burstNode is a process that runs a limiter.
type burstNode struct {
	orders  *json.Encoder
	reports *bufio.Reader
}

// startBurstNode starts a process that ends with the test.
func startBurstNode(t *testing.T, setup burstSetup) *burstNode {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(setup)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), burstEnv+"="+string(text))
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := command.Wait(); err != nil {
			t.Errorf("a node: %v", err)
		}
	})
	return &burstNode{json.NewEncoder(in), bufio.NewReader(out)}
}

// report waits for a node's report.
func (n *burstNode) report(t *testing.T) (r burstReport) {
	t.Helper()
	line, err := n.reports.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		t.Fatalf("a node's report: %v", err)
	}
	return r
}

// Three processes get 4.5 limits of requests within a second. They admit the limit, what
// callers sent while the node that was slowest to hear of the others had not, and what a
// fleet hides; and at least one run of five gets by with little.
func TestABurstOnThreeProcesses(t *testing.T) {
	server := realServer(t)
	setup := burstSetup{
		URL: server.URL(), Prefix: server.Prefix(), Window: ratelimit.WindowSliding, Threshold: burstThreshold, Interval: burstWindow,
	}
	var nodes []*burstNode
	for range burstNodes {
		nodes = append(nodes, startBurstNode(t, setup))
	}
	best := float64(burstRequests)
	for run := range burstRuns {
		if run > 0 {
			time.Sleep(burstPause)
		}
		order := burstOrder{
			Key: fmt.Sprint("key-", run), Requests: burstRequests / burstNodes, From: time.Now().Add(200 * time.Millisecond).UnixNano(), Within: burstWithin,
		}
		for _, n := range nodes {
			if err := n.orders.Encode(order); err != nil {
				t.Fatal(err)
			}
		}
		var sent []int64
		admitted, gap := 0, int64(0)
		for _, n := range nodes {
			r := n.report(t)
			if len(r.Sent) != order.Requests {
				t.Fatalf("run %d: a node sent %d requests, want %d", run, len(r.Sent), order.Requests)
			}
			admitted += r.Allowed
			sent = append(sent, r.Sent...)
			gap = max(gap, r.longest())
		}
		within := mostWithin(sent, gap)
		bound := burstThreshold + within + burstHidden
		t.Logf("run %d: %d of %d units passed, %.2f limits; longest gap %v, in which callers sent %d; at most %d",
			run, admitted, burstRequests, float64(admitted)/burstThreshold, time.Duration(gap).Round(time.Millisecond), within, bound)
		if admitted > bound {
			t.Errorf("run %d: %d units passed, want at most %d", run, admitted, bound)
		}
		if admitted < burstThreshold-1 {
			t.Errorf("run %d: %d units passed, want at least %d", run, admitted, burstThreshold-1)
		}
		best = min(best, float64(admitted)/burstThreshold)
	}
	if best > burstMost {
		t.Errorf("the best of %d runs admitted %.2f limits, want at most %v", burstRuns, best, burstMost)
	}
}

// mostWithin is the most of some moments that lie within one span of a length.
func mostWithin(moments []int64, length int64) (most int) {
	slices.Sort(moments)
	first := 0
	for i, at := range moments {
		for moments[first] < at-length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func TestMostWithin(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		moments []int64
		length  int64
		want    int
	}{
		{nil, 10, 0},
		{[]int64{5}, 0, 1},
		{[]int64{30, 0, 10, 20}, 10, 2},
		{[]int64{30, 0, 10, 20}, 9, 1},
		{[]int64{1, 1, 1, 50}, 0, 3},
		{[]int64{0, 10, 20, 30}, 100, 4},
	} {
		if got := mostWithin(row.moments, row.length); got != row.want {
			t.Errorf("%v within %d: %d, want %d", row.moments, row.length, got, row.want)
		}
	}
}
