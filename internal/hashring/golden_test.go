package hashring

// This file fixes what the ring answers. If one of its tests fails, a fleet that
// runs this release beside an older one counts entities on two servers at once and
// admits more than the threshold.

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestGoldenOwners(t *testing.T) {
	t.Parallel()
	names := family("redis-%d.example:6379/0", 0, 4)
	r := mustNew(t, names)
	for _, row := range []struct {
		key  string
		want int
	}{
		{"", 1},
		{"a", 2},
		{"team_1", 1},
		{"team_2", 2},
		{"team_3", 0},
		{"team_4", 2},
		{"team_42", 0},
		{"phc_00000001:events", 0},
		{"192.0.2.17", 0},
		{"ключ", 1},
		{"\x00\xff", 3},
		{strings.Repeat("k", 512), 3},
	} {
		if got := r.Owner(row.key); got != row.want {
			t.Errorf("Owner(%.40q) = %d, want %d", row.key, got, row.want)
		}
	}
}

func TestGoldenSlots(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		pattern string
		n       int
		want    string
	}{
		{"redis-%d.example:6379/0", 2, "fc6803619568f475"},
		{"redis-%d.example:6379/0", 16, "3a615f684b89c43a"},
		{"10.0.0.%d:6379/0", 5, "2ccf4398a9fbac92"},
		{"%d", 11, "a048fd10bcb9bf5b"},
	} {
		names := family(row.pattern, 0, row.n)
		r := mustNew(t, names)
		digest := sha256.New()
		for _, owner := range r.slots {
			digest.Write([]byte(names[owner] + "\n"))
		}
		if got := hex.EncodeToString(digest.Sum(nil)[:8]); got != row.want {
			t.Errorf("%d names %q: the slots' owners have the digest %s, want %s", row.n, row.pattern, got, row.want)
		}
	}
}

func TestGoldenHash(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		label string
		want  uint32
	}{
		{"", 0xafa7cff8},
		{"0", 0x6a65a1ca},
		{"32767", 0x4ca0d1aa},
		{"0#redis-0.example:6379/0", 0x392c8167},
		{"2047#redis-15.example:6379/0", 0x9f932990},
	} {
		if got := position([]byte(row.label)); got != row.want {
			t.Errorf("position(%q) = %#08x, want %#08x", row.label, got, row.want)
		}
	}
}
