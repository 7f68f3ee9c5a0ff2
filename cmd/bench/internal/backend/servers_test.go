package backend

import (
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/hanzoai/limiters/internal/redisurl"
)

// twoServers returns a backend on two servers of its own.
func twoServers(t *testing.T) (*Servers, [2]*miniredis.Miniredis) {
	t.Helper()
	one, two := miniredis.RunT(t), miniredis.RunT(t)
	targets, err := redisurl.ParseList([]string{"redis://" + one.Addr(), "redis://" + two.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServers(targets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, [2]*miniredis.Miniredis{one, two}
}

func TestCountsAreReadFromAllServers(t *testing.T) {
	t.Parallel()
	s, at := twoServers(t)
	at[0].Set("a", "5")
	at[1].Set("a", "2")
	at[1].Set("c", "9007199254740991")
	totals := []uint64{100, 0, 0}
	if err := s.Read([]string{"a", "b", "c"}, totals); err != nil {
		t.Fatal(err)
	}
	if want := []uint64{107, 0, 1<<53 - 1}; !slices.Equal(totals, want) {
		t.Errorf("totals = %v, want %v", totals, want)
	}
	if sent, received := s.Bytes(); sent != 0 || received != 0 {
		t.Errorf("reading back counts as %d bytes sent, %d received", sent, received)
	}
}

func TestAValueThatIsNoCountIsAnError(t *testing.T) {
	t.Parallel()
	s, at := twoServers(t)
	for _, value := range []string{"-1", "1.5", "many", ""} {
		at[1].Set("a", value)
		err := s.Read([]string{"a"}, make([]uint64, 1))
		if err == nil || !strings.Contains(err.Error(), "a holds no valid count") || !strings.Contains(err.Error(), at[1].Addr()) {
			t.Errorf("reading %q: error %v, want one that names key and server", value, err)
		}
	}
}

func TestCleaningLeavesOthersKeys(t *testing.T) {
	t.Parallel()
	s, at := twoServers(t)
	const prefix = `app[1]*\?`
	for _, server := range at {
		for i := range 2500 {
			server.Set(prefix+":"+KeyNames(1)[0]+strings.Repeat("x", i%50)+":"+string(rune('a'+i/50)), "1")
		}
		server.Set("app1anything:k", "1")
		server.Set(prefix+"2:k", "1")
	}
	if err := s.Clean(prefix); err != nil {
		t.Fatal(err)
	}
	for i, server := range at {
		if got, want := server.Keys(), []string{"app1anything:k", prefix + "2:k"}; !slices.Equal(got, want) {
			t.Errorf("server %d keeps %d keys, want %q", i, len(got), want)
		}
	}
}

func TestEveryServerThatCannotBeReachedIsNamed(t *testing.T) {
	t.Parallel()
	targets, err := redisurl.ParseList([]string{"redis://:secret@127.0.0.1:1", "redis://127.0.0.1:2"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewServers(targets)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "127.0.0.1:2") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error = %v, want both servers and no password", err)
	}
}
