package throughput

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsWithoutArgumentsAreTheDefaults(t *testing.T) {
	t.Parallel()
	o, err := parseOptions(nil, io.Discard)
	if err != nil {
		t.Fatalf("parseOptions(nil): %v", err)
	}
	if o.duration != 10*time.Second || o.nodes != 4 || o.keys != 100_000 || o.threshold != 0 || o.redis != nil || o.env || o.json != "" {
		t.Errorf("parseOptions(nil) = %+v", o)
	}
	if o.workers < o.nodes || o.workers%o.nodes != 0 {
		t.Errorf("workers = %d, want a multiple of %d nodes", o.workers, o.nodes)
	}
	if len(o.set) != 0 {
		t.Errorf("set = %v, want none", o.set)
	}
}

func TestFlagsAreRead(t *testing.T) {
	t.Parallel()
	o, err := parseOptions(strings.Fields("-duration 5s -nodes 2 -workers 6 -keys 200 -zipf 1.2 -threshold 77 -window 4s -tick 500ms -redis redis://a:1,two=rediss://b:2/3 -json - -seed 9 -env -clean"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if o.duration != 5*time.Second || o.nodes != 2 || o.workers != 6 || o.keys != 200 || o.zipf != 1.2 || o.threshold != 77 ||
		o.window != 4*time.Second || o.tick != 500*time.Millisecond || o.json != "-" || o.seed != 9 || !o.env || !o.clean {
		t.Errorf("parseOptions = %+v", o)
	}
	if want := []string{"redis://a:1", "two=rediss://b:2/3"}; !slices.Equal(o.redis, want) {
		t.Errorf("redis = %q, want %q", o.redis, want)
	}
	if !o.set["threshold"] || o.set["slice"] {
		t.Errorf("set = %v", o.set)
	}
}

func TestFlagErrorsNameFlagValueAndWhatIsAccepted(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args string
		want []string
	}{
		{"-duration soon", []string{"-duration", `"soon"`, "a duration such as 10s", "1h"}},
		{"-duration 1ms", []string{"-duration", `"1ms"`, "from 100ms"}},
		{"-nodes 0", []string{"-nodes", `"0"`, "an integer from 1 to 256"}},
		{"-nodes 1.5", []string{"-nodes", `"1.5"`, "an integer from 1 to 256"}},
		{"-workers -1", []string{"-workers", `"-1"`, "from 0"}},
		{"-workers 3 -nodes 2", []string{"-workers", "3", "a multiple of -nodes (2)"}},
		{"-workers 2 -nodes 4", []string{"-workers", "2", "a multiple of -nodes (4)"}},
		{"-keys 0", []string{"-keys", `"0"`, "from 1"}},
		{"-zipf 1", []string{"-zipf", `"1"`, "a number from 1.01 to 10"}},
		{"-zipf NaN", []string{"-zipf", `"NaN"`, "a number from 1.01 to 10"}},
		{"-threshold -1", []string{"-threshold", `"-1"`, "an integer from 0"}},
		{"-threshold 9007199254740992", []string{"-threshold", "to 9007199254740991"}},
		{"-window 1ms", []string{"-window", `"1ms"`, "from 100ms"}},
		{"-window 1s -tick 300ms", []string{"-tick", "300ms", "a quarter of -window (1s)"}},
		{"-slice 0", []string{"-slice", `"0"`, "from 1"}},
		{"-seed x", []string{"-seed", `"x"`, "an integer from 0"}},
		{"-redis localhost:6379", []string{"-redis", "redis://", "unix://"}},
		{"-redis memory://", []string{"-redis", "memory:// is no server", "redis://, rediss:// or unix://"}},
		{"-redis ,", []string{"-redis", "no URL"}},
		{"-redis redis://a:1,http://b:1,redis://c:x", []string{"-redis", "element 2", "element 3"}},
		{"-frequency 5", []string{"-frequency"}},
		{"tock", []string{`"tock"`, "flags only", "throughput"}},
	} {
		_, err := parseOptions(strings.Fields(row.args), io.Discard)
		if err == nil {
			t.Errorf("parseOptions(%s): no error", row.args)
			continue
		}
		for _, want := range row.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("parseOptions(%s): %q does not contain %q", row.args, err, want)
			}
		}
	}
}

func TestFlagErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	_, err := parseOptions([]string{"-redis", "http://user:secret@host"}, io.Discard)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want one without the password", err)
	}
}

func TestHelpListsEveryFlagWithItsDefault(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	if _, err := parseOptions([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("error = %v, want flag.ErrHelp", err)
	}
	for _, want := range []string{"-duration", "-nodes", "-workers", "-keys", "-zipf", "-threshold", "-window", "-tick", "-redis", "-json", "-seed", "-env", "-clean", "(default 10s)", "throughput"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, &help)
		}
	}
}
