package throughput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// brief is a run that is over soon; its window is long enough that a busy machine
// does not make units stale.
const brief = "-duration 400ms -keys 500 -nodes 2 -workers 2 -slice 512 -window 2s -tick 100ms"

// bench calls Run as main does.
func bench(ctx context.Context, args string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = Run(ctx, strings.Fields(args), &out, &err)
	return status, out.String(), err.String()
}

func TestARunOnTheEmbeddedServerConserves(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := bench(t.Context(), brief+" -json -")
	var r result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("stdout holds more than JSON: %v in %q; stderr %q", err, stdout, stderr)
	}
	if status != command.OK || !r.Conserved || !r.KeyByKey || r.Backend != "embedded" {
		t.Errorf("status %d, result %+v", status, r)
	}
	if r.Checks == 0 || r.UnitsCounted == 0 || r.UnitsCounted != r.UnitsInRedis || r.Allowed+r.Limited != r.Checks {
		t.Errorf("counts do not add up: %+v", r)
	}
	if r.Scripts == 0 || r.BytesSent == 0 || r.BytesReceived == 0 || r.P99 == 0 || !r.ThresholdDerived {
		t.Errorf("something was not measured: %+v", r)
	}
	if !strings.Contains(stderr, "CONSERVED") {
		t.Errorf("the summary is not on stderr: %q", stderr)
	}
}

func TestTheSummaryIsOnStdoutUnlessJSONIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.json")
	status, stdout, _ := bench(t.Context(), brief+" -threshold 1000 -json "+file)
	if status != command.OK || !strings.Contains(stdout, "CONSERVED") || !strings.Contains(stdout, "threshold 1,000 per 2s,") {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
	if text, err := os.ReadFile(file); err != nil || !json.Valid(text) {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestALowThresholdLimits(t *testing.T) {
	t.Parallel()
	status, stdout, _ := bench(t.Context(), brief+" "+" -threshold 5 -json -")
	var r result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if status != command.OK || r.Limited == 0 || r.Limited < r.Allowed {
		t.Errorf("status %d, %d allowed, %d limited; want more limited", status, r.Allowed, r.Limited)
	}
}

func TestAnInterruptEndsWithTheSummary(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, stdout, _ := bench(ctx, "-duration 1h -keys 500 -threshold 100")
	if status != command.OK || !strings.Contains(stdout, "(interrupted)") || !strings.Contains(stdout, "CONSERVED") {
		t.Errorf("status %d, stdout %q", status, stdout)
	}
}

func TestWrongFlagsExitWithTwo(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"-nodes x":                      "-nodes",
		"-keys 0":                       "-keys",
		"nonsense":                      "nonsense",
		"-tick 1ms":                     "-tick",
		"-window 1h -tick 14m -slice 0": "-slice",
		"-window 401500us -tick 100ms":  "WindowInterval", // the library wants whole milliseconds
	} {
		status, stdout, stderr := bench(t.Context(), args)
		if status != command.Usage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("bench %s: status %d, stdout %q, stderr %q; want 2, nothing, %q", args, status, stdout, stderr, want)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := bench(t.Context(), "-h")
	if status != command.OK || stderr != "" || !strings.Contains(stdout, "-duration") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestAnUnreachableServerIsSaidBeforeTheRun(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := bench(t.Context(), "-redis redis://user:secret@127.0.0.1:1 -duration 1h")
	if status != command.Failed || stdout != "" || !strings.Contains(stderr, "127.0.0.1:1") || strings.Contains(stderr, "secret") {
		t.Errorf("status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
}

func TestABadEnvironmentPrintsAllErrorsAndExitsWithTwo(t *testing.T) {
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_URLS", "memory://")
	t.Setenv("GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS", "abc")
	t.Setenv("GLOBAL_RATE_LIMIT_OVERRIDES_CSV", "a=1,a=x")
	status, stdout, stderr := bench(t.Context(), "-env")
	if status != command.Usage || stdout != "" {
		t.Errorf("status %d, stdout %q; want 2 and nothing", status, stdout)
	}
	for _, want := range []string{"GLOBAL_RATE_LIMIT_WINDOW_INTERVAL_SECS", `"abc"`, "GLOBAL_RATE_LIMIT_OVERRIDES_CSV", `"a=x"`} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr lacks %s: %q", want, stderr)
		}
	}
}

func TestTheEnvironmentRunsOnSharedMemory(t *testing.T) {
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_URLS", "one=memory://,two=memory://")
	t.Setenv("GLOBAL_RATE_LIMIT_THRESHOLD", "50")
	t.Setenv("GLOBAL_RATE_LIMIT_COUNT_LIMITED", "true")
	status, stdout, stderr := bench(t.Context(), "-env -duration 300ms -nodes 2 -workers 2 -keys 500 -window 2s -tick 100ms")
	if status != command.OK {
		t.Errorf("status %d, stderr %q", status, stderr)
	}
	for _, want := range []string{"GLOBAL_RATE_LIMIT_THRESHOLD", "CountLimited", "2s", "in the place of memory://", "threshold 50 per 2s,", "CONSERVED"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout lacks %s: %q", want, stdout)
		}
	}
}

func TestTheEnvironmentIsPrintedWithoutSecrets(t *testing.T) {
	t.Setenv("GLOBAL_RATE_LIMIT_REDIS_URLS", "redis://user:secret@127.0.0.1:1")
	_, stdout, stderr := bench(t.Context(), "-env")
	if strings.Contains(stdout+stderr, "secret") || !strings.Contains(stdout, "127.0.0.1:1") {
		t.Errorf("stdout %q, stderr %q", stdout, stderr)
	}
}

// A tampered backend changes what is read back.
type tampered struct {
	backend.Backend
	change func(totals []uint64)
}

func (b tampered) Read(keys []string, totals []uint64) error {
	err := b.Backend.Read(keys, totals)
	b.change(totals)
	return err
}

func TestALostOrDoubledUnitIsNoticed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]uint64){
		"lost": func(totals []uint64) {
			for i := range totals {
				totals[i] -= min(1, totals[i])
			}
		},
		"doubled": func(totals []uint64) {
			for i := range totals {
				totals[i] += min(1, totals[i])
			}
		},
	} {
		o, err := parseOptions(strings.Fields(brief+" -threshold 1000"), nil)
		if err != nil {
			t.Fatal(err)
		}
		config, err := settings(o)
		if err != nil {
			t.Fatal(err)
		}
		r, err := measure(t.Context(), o, config, tampered{backend.NewMemory(2), change}, &bytes.Buffer{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Conserved || len(r.Broken) == 0 {
			t.Errorf("a unit of each key %s: conserved, %+v", name, r)
		}
	}
}

func TestCountsThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	o, err := parseOptions(strings.Fields(brief+" -threshold 1000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := settings(o)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := measure(t.Context(), o, config, unreadable{backend.NewMemory(1)}, &bytes.Buffer{}); !errors.Is(err, errUnreadable) {
		t.Errorf("measure = %+v, %v; want %v", r, err, errUnreadable)
	}
}

var errUnreadable = errors.New("unreadable")

type unreadable struct{ backend.Backend }

func (unreadable) Read([]string, []uint64) error { return errUnreadable }
