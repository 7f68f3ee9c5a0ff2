package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// TestMain lets the test's own program be a node of the fleet: beFleet starts
// itself.
func TestMain(m *testing.M) {
	for _, argument := range os.Args[1:] {
		if argument == "-node" {
			flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
			main()
			return
		}
	}
	goleak.VerifyTestMain(m)
}

// Two real processes on a real Redis where there is one. How much passes depends on
// how the machine schedules them, so it is held to no more than what is gross.
func TestTwoProcessesShareOneLimit(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := beFleet(t.Context(), "", 3*time.Second, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	reports := regexp.MustCompile(`(?m)^node ([ab]): second (\d): (\d+) of 600 units passed$`).FindAllStringSubmatch(out.String(), -1)
	if len(reports) != 6 {
		t.Fatalf("%d reports, want 3 of each process:\n%s", len(reports), out.String())
	}
	sum := regexp.MustCompile(`(?m)^both, after the first second: (\d+) units a second passed of a limit of 200$`).FindStringSubmatch(out.String())
	if sum == nil {
		t.Fatalf("no sum:\n%s", out.String())
	}
	if passed, _ := strconv.Atoi(sum[1]); passed == 0 || passed >= 2*offered {
		t.Errorf("%d units a second passed of %d offered: nothing, or nothing was limited", passed, 2*offered)
	}
}

// What two nodes let through, on a fake clock: exactly the same every time.
func TestTheLimitIsTheFleets(t *testing.T) {
	t.Parallel()
	fleet := ratelimittest.NewFleet(t, 2, config("memory://"))
	passed := 0
	for range 600 { // six seconds
		for node := range 2 {
			for range offered / 100 {
				if fleet.Node(node).Allow("the shared key") {
					passed++
				}
			}
		}
		fleet.Advance(10 * time.Millisecond)
	}
	if got, most := passed/6, limit*13/10; got < limit/2 || got > most {
		t.Errorf("%d units a second passed, want from %d to %d", got, limit/2, most)
	}
}

func TestARedisIsFound(t *testing.T) {
	t.Parallel()
	url, what, stop, err := startRedis()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	t.Log("redis:", what)
	lim, err := ratelimit.New(config(url))
	if err != nil {
		t.Fatal(err)
	}
	defer lim.Close(t.Context())
	lim.Check("k", 3)
	if err := lim.Sync(t.Context()); err != nil {
		t.Errorf("%s: %v", url, err)
	}
}

func TestAServerThatEndsIsAnError(t *testing.T) {
	t.Parallel()
	if _, _, err := startServer("/bin/false"); err == nil {
		t.Error("startServer takes /bin/false for a server")
	}
	if _, _, err := startServer("/nonexistent"); err == nil {
		t.Error("startServer starts what does not exist")
	}
}

func TestNobodyTakesReports(t *testing.T) {
	t.Parallel()
	lim, err := ratelimit.New(config("memory://"), ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		t.Fatal(err)
	}
	defer lim.Close(t.Context())
	told := 0
	offer(t.Context(), lim, time.Hour, func(r report) error {
		told++
		if r.Second != 1 || r.Offered != offered || r.Passed != limit-1 {
			t.Errorf("report %+v", r)
		}
		return fmt.Errorf("gone")
	})
	if told != 1 {
		t.Errorf("%d reports, want 1", told)
	}
}
