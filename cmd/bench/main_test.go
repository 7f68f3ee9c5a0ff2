package main

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/command"
)

// bench calls run as main does.
func bench(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), strings.Fields(args), &out, &err)
	return status, out.String(), err.String()
}

func TestTheFirstArgumentChoosesTheRun(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ args, says string }{
		{"-h", "-close-timeout"},
		{"throughput -h", "-close-timeout"},
		{"tick -h", "-sizes"},
		{"accuracy -h", "-kinds"},
		{"one-key -h", "-svg"},
	} {
		if status, stdout, stderr := bench(t, row.args); status != command.OK || stderr != "" || !strings.Contains(stdout, row.says) {
			t.Errorf("bench %s: status %d, stdout %q, stderr %q; want help with %s", row.args, status, stdout, stderr, row.says)
		}
	}
	if status, _, stderr := bench(t, "nonsense"); status != command.Usage || !strings.Contains(stderr, `"nonsense"`) || !strings.Contains(stderr, "accuracy, one-key, page, throughput, tick") {
		t.Errorf("bench nonsense: status %d, stderr %q", status, stderr)
	}
}

func TestTheHelpNamesEveryRun(t *testing.T) {
	t.Parallel()
	if want := slices.Sorted(maps.Keys(runs)); !slices.Equal(command.Names(), want) {
		t.Errorf("the help names %q, the runs are %q", command.Names(), want)
	}
}
