package goredis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// The tags are part of the keys: another tag loses the counts of its partition.
func TestTagsAreTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	const want = "021 bn emk 7d 4z4 6xr 4k6 6ip 06q 247 8jc gkm i94 c2j 4ov 6m0 1d8 ne6 112 33t 5h5 7js 5y7 jx9 lc0 fhn 15r 374 5lu 7n3 qu7 b1i"
	if got := strings.Join(tags(32), " "); got != want {
		t.Errorf("tags(32) =\n%s, want\n%s", got, want)
	}
	all := tags(MaxPartitions)
	for n := 1; n <= MaxPartitions; n++ {
		if !slices.Equal(tags(n), all[:n]) {
			t.Fatalf("tags(%d) are not the first of tags(%d)", n, MaxPartitions)
		}
	}
	for i, tag := range all {
		if len(tag) > 4 || strings.ContainsAny(tag, "{}") {
			t.Errorf("tag %d is %q", i, tag)
		}
		if got := int(crc16([]byte(tag))) % slots; got != slotOf(i) {
			t.Errorf("tag %q has slot %d, want %d", tag, got, slotOf(i))
		}
	}
}

func TestCRC16(t *testing.T) {
	t.Parallel()
	// The check value of CRC-16/XMODEM, which Redis documents.
	if got := crc16([]byte("123456789")); got != 0x31C3 {
		t.Errorf("crc16 = %#x, want 0x31c3", got)
	}
}

// Masters that share the slots evenly have about as many partitions each.
func TestPartitionsSpreadOverMasters(t *testing.T) {
	t.Parallel()
	for masters := 1; masters <= 16; masters++ {
		for _, n := range []int{4, 8, 16, 32, 64, 128, 256} {
			if n < 4*masters {
				continue
			}
			owned := make([]int, masters)
			for i := range n {
				owned[slotOf(i)*masters/slots]++
			}
			if most, least := slices.Max(owned), slices.Min(owned); most-least > 1 {
				t.Errorf("%d partitions on %d masters: %v", n, masters, owned)
			}
		}
	}
	for n := 1; n <= MaxPartitions; n++ { // and for any n no half has twice the other's
		var owned [2]int
		for i := range n {
			owned[slotOf(i)*2/slots]++
		}
		if owned[0]-owned[1] > 1 || owned[1]-owned[0] > 1 {
			t.Errorf("%d partitions on two masters: %v", n, owned)
		}
	}
}

func TestPartitionsRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{})
	unbounded := redis.NewClient(&redis.Options{ReadTimeout: -1})
	unwritten := redis.NewClusterClient(&redis.ClusterOptions{WriteTimeout: -1})
	unset := redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -2})
	fine := redis.NewClient(&redis.Options{})
	clients := []redis.UniversalClient{ring, unbounded, unwritten, unset, fine}
	t.Cleanup(func() {
		for _, c := range clients {
			_ = c.Close()
		}
	})
	for _, row := range []struct {
		client redis.UniversalClient
		n      int
		want   string
	}{
		{fine, 0, "0 partitions"},
		{fine, -1, "-1 partitions"},
		{fine, MaxPartitions + 1, "257 partitions"},
		{nil, 1, "<nil>"},
		{(*redis.Client)(nil), 1, "is nil"},
		{(*redis.ClusterClient)(nil), 1, "is nil"},
		{ring, 1, "*redis.Ring"},
		{unbounded, 1, "ReadTimeout"},
		{unwritten, 1, "WriteTimeout"},
		{unset, 1, "ReadTimeout"},
	} {
		_, err := Partitions(row.client, row.n)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("Partitions(%T, %d) = %v, want an error with %q", row.client, row.n, err, row.want)
		}
	}
	got, err := Partitions(fine, 3)
	if err != nil || len(got) != 3 {
		t.Fatalf("Partitions(…, 3) = %d, %v", len(got), err)
	}
	for i, p := range got {
		if p.Name != fmt.Sprintf("p%d", i) || p.HashTag != tags(3)[i] || p.Store == nil {
			t.Errorf("partition %d is %+v", i, p)
		}
	}
}
