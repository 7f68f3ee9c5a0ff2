package backend

import (
	"strings"
	"testing"

	"github.com/hanzoai/limiters/internal/memstore"
	"github.com/hanzoai/limiters/ratelimit"
)

func TestTheURLsChooseTheBackend(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		urls       []string
		kind       string
		partitions int
		fails      string
	}{
		{nil, "embedded", 1, ""},
		{[]string{"memory://"}, "memory", 1, ""},
		{[]string{"a=memory://", "b=memory://"}, "memory", 2, ""},
		{[]string{"memory://", "redis://127.0.0.1:1"}, "", 0, "no server can stand beside it"},
		{[]string{"redis://"}, "", 0, "no host"},
	} {
		config := ratelimit.DefaultConfig()
		config.RedisURLs = row.urls
		b, err := New(&config)
		if row.fails != "" {
			if err == nil || !strings.Contains(err.Error(), row.fails) {
				t.Errorf("New(%q): error %v, want %q", row.urls, err, row.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("New(%q): %v", row.urls, err)
			continue
		}
		if b.Kind() != row.kind || b.Partitions() != row.partitions {
			t.Errorf("New(%q) = %s with %d partitions", row.urls, b.Kind(), b.Partitions())
		}
		if err := config.Validate(); err != nil {
			t.Errorf("New(%q) leaves a configuration that is not valid: %v", row.urls, err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("closing %s: %v", row.kind, err)
		}
	}
}

func TestMemoryIsReadFromAllStores(t *testing.T) {
	t.Parallel()
	m := NewMemory(2)
	m.stores[0].Set("a", "5")
	m.stores[1].Set("a", "2")
	totals := []uint64{0, 0}
	if err := m.Read([]string{"a", "b"}, totals); err != nil || totals[0] != 7 || totals[1] != 0 {
		t.Errorf("totals = %v, %v; want 7, 0", totals, err)
	}
	for name, poison := range map[string]func(s *memstore.Store){
		"text":         func(s *memstore.Store) { s.Set("a", "many") },
		"another type": func(s *memstore.Store) { s.SetForeign("a") },
	} {
		poison(m.stores[1])
		if err := m.Read([]string{"a"}, totals); err == nil || !strings.Contains(err.Error(), "a holds no valid count") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
