package ratelimit_test

// This file holds what two versions of the library must agree on to share a Redis:
// the names of keys. docs/versioning.md promises it within a major version; a
// change here is a new major version.

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// A keyRecorder keeps the keys of the last batch.
type keyRecorder struct {
	store.Store
	sequence, window string
	writes, reads    []string
}

func (k *keyRecorder) Apply(ctx context.Context, b *store.Batch, r *store.Reply) error {
	k.sequence, k.window = b.Sequence, b.WindowKey
	k.writes, k.reads = nil, append([]string(nil), b.Reads...)
	for _, w := range b.Writes {
		k.writes = append(k.writes, w.Key)
	}
	return k.Store.Apply(ctx, b, r)
}

// longDigest stands for "long" 200 times.
const longDigest = "sha256#6950b77638b2af5f754276f1012fb65153f6b65ada467a8a65837fa25c22e984"

func TestKeysAreStable(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, prefix, tag, key string
		window                 time.Duration
		begins                 string // of every key but the counters, with the prefix of those
		current, previous      string
	}{
		{
			"defaults", "@hanzo/global_rate_limiter", "", "team_42", time.Minute,
			"@hanzo/global_rate_limiter:",
			"@hanzo/global_rate_limiter:team_42:28401120", "@hanzo/global_rate_limiter:team_42:28401119",
		},
		{
			"a hash tag", "p", "slot-7", "a:b", time.Minute,
			"{slot-7}p:",
			"{slot-7}p:a:b:28401120", "{slot-7}p:a:b:28401119",
		},
		{
			"a window of milliseconds, the empty key", "p", "", "", 250 * time.Millisecond,
			"p:",
			"p::6816268800", "p::6816268799",
		},
		{
			"a long key", "p", "", strings.Repeat("long", 200), time.Minute,
			"p:",
			"p:" + longDigest + ":28401120", "p:" + longDigest + ":28401119",
		},
	} {
		fake := clock.NewFake(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
		recorder := &keyRecorder{Store: memstore.New(func() int64 { wall, _ := fake.Now(); return wall })}
		cfg := ratelimit.DefaultConfig()
		cfg.RedisKeyPrefix, cfg.WindowInterval = row.prefix, row.window
		lim, err := ratelimit.New(cfg, ratelimit.WithClock(fake), ratelimit.WithMetricsSet(metrics.NewSet()),
			ratelimit.WithPartitions(ratelimit.Partition{Name: "one", Store: recorder, HashTag: row.tag}))
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		t.Cleanup(func() { lim.Close(context.Background()) })
		lim.Check(row.key, 1)
		if err := lim.Sync(context.Background()); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if diff := cmp.Diff([]string{row.current}, recorder.writes); diff != "" {
			t.Errorf("%s: counters written (-want +got):\n%s", row.name, diff)
		}
		if diff := cmp.Diff([]string{row.previous}, recorder.reads); diff != "" {
			t.Errorf("%s: counters read (-want +got):\n%s", row.name, diff)
		}
		if want := row.begins + "window"; recorder.window != want {
			t.Errorf("%s: window key %q, want %q", row.name, recorder.window, want)
		}
		sequence := regexp.MustCompile("^" + regexp.QuoteMeta(row.begins) + "[0-9a-f]{32}:seq$")
		if !sequence.MatchString(recorder.sequence) {
			t.Errorf("%s: sequence key %q, want %s", row.name, recorder.sequence, sequence)
		}
	}
}
