package throughput

import (
	"strings"
	"testing"

	"github.com/hanzoai/limiters/cmd/bench/internal/backend"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	type units = []uint64
	for _, row := range []struct {
		name    string
		counted units
		found   units
		byNodes uint64
		loss    lossReport
		broken  string // part of what is said; "" if conserved
	}{
		{"all there", units{5, 0, 7}, units{5, 0, 7}, 12, lossReport{}, ""},
		{"nothing counted", units{0, 0}, units{0, 0}, 0, lossReport{}, ""},
		{"a unit lost", units{5, 7}, units{5, 6}, 12, lossReport{}, "1 units are nowhere"},
		{"a unit doubled", units{5, 7}, units{5, 8}, 12, lossReport{}, "1 keys hold other counts"},
		{"a unit under another key", units{5, 7}, units{6, 6}, 12, lossReport{}, "2 keys hold other counts"},
		{"a unit of a key never checked", units{5, 0}, units{5, 1}, 5, lossReport{}, "1 keys hold other counts"},
		{"a unit that the nodes forgot to count", units{5, 7}, units{5, 7}, 11, lossReport{}, "the nodes say that they counted 11 units, the workers saw 12"},
		{"a unit that only the nodes counted", units{5, 7}, units{5, 7}, 13, lossReport{}, "the nodes say"},
		{"undelivered, not there", units{5, 7}, units{5, 4}, 12, lossReport{Undelivered: 3}, ""},
		{"undelivered, there after all", units{5, 7}, units{5, 7}, 12, lossReport{Undelivered: 3}, ""},
		{"undelivered is too little", units{5, 7}, units{5, 3}, 12, lossReport{Undelivered: 3}, "1 units are nowhere"},
		{"unknown, not there", units{5, 7}, units{0, 7}, 12, lossReport{Unknown: 5}, ""},
		{"unknown, partly there", units{5, 7}, units{3, 7}, 12, lossReport{Unknown: 5}, ""},
		{"unknown hides no doubled unit", units{5, 7}, units{5, 8}, 12, lossReport{Unknown: 5}, "1 keys hold other counts"},
		{"dropped, not there", units{5, 7}, units{5, 5}, 12, lossReport{Dropped: 2}, ""},
		{"dropped and there as well", units{5, 7}, units{5, 6}, 12, lossReport{Dropped: 2}, "13 units found or dropped, only 12 counted"},
		{"dropped is too little", units{5, 7}, units{5, 4}, 12, lossReport{Dropped: 2}, "1 units are nowhere"},
		{"all kinds of loss at once", units{10, 10}, units{10, 3}, 20, lossReport{Undelivered: 1, Unknown: 2, Dropped: 4}, ""},
		{"all kinds of loss and one more", units{10, 10}, units{10, 2}, 20, lossReport{Undelivered: 1, Unknown: 2, Dropped: 4}, "1 units are nowhere"},
	} {
		a := newAudit(backend.KeyNames(len(row.counted)), row.counted, row.found, row.byNodes, row.loss)
		said := strings.Join(a.Broken, "\n")
		switch {
		case a.conserved() != (row.broken == ""):
			t.Errorf("%s: conserved = %v, says %q", row.name, a.conserved(), said)
		case !strings.Contains(said, row.broken):
			t.Errorf("%s: says %q, want %q", row.name, said, row.broken)
		case a.Exact != row.loss.none():
			t.Errorf("%s: key by key = %v", row.name, a.Exact)
		}
	}
}

func TestAuditNamesTheKeysAndOnlySome(t *testing.T) {
	t.Parallel()
	counted, found := make([]uint64, 100), make([]uint64, 100)
	for k := range counted {
		counted[k] = 1000
	}
	a := newAudit(backend.KeyNames(100), counted, found, 100_000, lossReport{})
	if a.Wrong != 100 || a.Counted != 100_000 || a.Found != 0 {
		t.Errorf("audit = %+v", a)
	}
	said := strings.Join(a.Broken, "\n")
	if !strings.Contains(said, "entity_0000000000: counted 1,000, found 0") {
		t.Errorf("no key is named: %q", said)
	}
	if n := strings.Count(said, "entity_"); n != maxExamples {
		t.Errorf("%d keys named, want %d", n, maxExamples)
	}
}
