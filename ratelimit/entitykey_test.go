// Tests of representations: any string is a key, and no two keys meet.

package ratelimit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

func TestRepresentationOfAKey(t *testing.T) {
	t.Parallel()
	digest := func(key string) string {
		sum := sha256.Sum256([]byte(key))
		return "sha256#" + hex.EncodeToString(sum[:])
	}
	long := strings.Repeat("x", 513)
	for _, c := range []struct{ key, want string }{
		{"", ""},
		{"team_42", "team_42"},
		{long[:512], long[:512]},
		{long, digest(long)},
		{strings.Repeat("x", 1<<20), digest(strings.Repeat("x", 1<<20))},
		{"sha256#", digest("sha256#")},
		{"sha256", "sha256"},
		{"SHA256#", "SHA256#"},
		{digest(long), digest(digest(long))}, // the digest of another key is not that key
		{"a:b{c}\r\n\x00\xff", "a:b{c}\r\n\x00\xff"},
	} {
		if got := representation(c.key, 512); got != c.want {
			t.Errorf("a key of %d bytes that begins %.20q is represented by %.80q, want %.80q", len(c.key), c.key, got, c.want)
		}
	}
}

// awkward keys: pairs of them would meet if keys were joined or digested carelessly.
func awkward() []string {
	long := strings.Repeat("y", 512)
	return []string{
		"", ":", "::", ":1", "1", "1:", "1:1", "a", "a:", "a:29452320", "a:29452320:29452320",
		"window", ":window", "seq", ":seq", "a:seq", "{", "}", "{}", "{a}", "{a}a", "a{a}",
		"\n", "\r\n", "a\n", "a\r\n", "a\x00", "\x00", "\xff", "\xff\xfe", "é", "e\u0301", " ", "a ", " a",
		long, long + "y", long + "z", strings.Repeat("z", 10_000), "sha256#", "sha256#a", "sha256##",
		representation(long+"y", 512), representation(representation(long+"y", 512), 512),
		representation("sha256#", 512), "-1", "a:-1", "%", "*", "?", "[a]", "\\",
	}
}

func TestAwkwardKeysNeverMeet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.node(nil)
	keys := awkward()
	for i, key := range keys {
		if d := n.check(key, uint64(i+1)); d.Basis() != BasisFirstContact {
			t.Errorf("%.40q is known before its first contact", key)
		}
	}
	w.clock.Advance(time.Second)
	w.conserves(n)
	for i, key := range keys {
		if d := n.Peek(key); d.Level() != float64(i+1) || d.Basis() != BasisFleet {
			t.Errorf("%.40q is at level %v on %v, want %d on fleet", key, d.Level(), d.Basis(), i+1)
		}
		name := n.KeyName(key)
		if got := w.total(n, name, n.read().epoch); got != int64(i+1) {
			t.Errorf("the store holds %d units of %.40q, want %d", got, key, i+1)
		}
	}
	if got, want := len(w.mem.Keys()), len(keys)+2; got != want { // the sequence and the window beside them
		t.Errorf("the store holds %d keys, want %d", got, want)
	}
}

func TestNoTwoCountersShareAKeyInTheStore(t *testing.T) {
	t.Parallel()
	key := rapid.OneOf(
		rapid.SampledFrom(awkward()),
		rapid.StringMatching(`[a:{}0-9\n-]{0,6}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 80), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 8), func(b []byte) string { return digestMarker + string(b) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		a, b := key.Draw(t, "key"), key.Draw(t, "other key")
		epochs := rapid.Int64Range(-200, 200)
		e, f := epochs.Draw(t, "epoch"), epochs.Draw(t, "other epoch")
		counter := func(key string, epoch int64) string {
			return string(appendCounterKey(nil, "p", representation(key, 64), epoch))
		}
		if same := counter(a, e) == counter(b, f); same != (a == b && e == f) {
			t.Fatalf("%q in epoch %d and %q in epoch %d: one counter %v", a, e, b, f, same)
		}
		for _, k := range []string{windowKey("p"), sequenceKey("p", a), sequenceKey("p", "00ff")} {
			if counter(b, f) == k {
				t.Fatalf("%q in epoch %d has the key %q", b, f, k)
			}
		}
	})
}

func TestRepresentationsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(64, 1000).Draw(t, "bound")
		key := strings.Repeat("k", rapid.IntRange(0, 5000).Draw(t, "length"))
		if got := len(representation(key, limit)); got > max(limit, len(digestMarker)+64) {
			t.Fatalf("a key of %d bytes is represented by %d, with a bound of %d", len(key), got, limit)
		}
	})
}

// An entity takes its key's bytes, not those of the text that the caller cut it from,
// and a caller may use those bytes again.
func TestAnEntityKeepsACopyOfItsKey(t *testing.T) {
	t.Parallel()
	n := newWorld(t).node(nil)
	text := []byte(strings.Repeat("x", 1<<16))
	n.Check(unsafe.String(&text[0], 8), 5)
	n.CheckAll([]Item{{Key: unsafe.String(&text[100], 9), Units: 6}})
	clear(text)
	if a, b := n.Peek("xxxxxxxx").Level(), n.Peek("xxxxxxxxx").Level(); a != 5 || b != 6 {
		t.Errorf("levels %v and %v, want 5 and 6", a, b)
	}
}

func TestALongKeyIsLimitedLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.node(nil), w.node(nil)
	key := strings.Repeat("long", 10_000)
	if got := a.allowed(key, 1000); got != 99 {
		t.Errorf("admitted %d, want 99", got)
	}
	b.check(key, 1)
	w.clock.Advance(time.Second)
	w.conserves(a, b)
	if d := b.check(key, 1); d.Allowed() || d.Basis() != BasisFleet {
		t.Errorf("the second node: %v on %v", d.Verdict(), d.Basis())
	}
	if d := b.check(key+"x", 1); d.Basis() != BasisFirstContact {
		t.Errorf("another long key rests on %v", d.Basis())
	}
	a.Forget(key)
	if d := a.Peek(key); d.Basis() != BasisFirstContact {
		t.Errorf("forgotten, it rests on %v", d.Basis())
	}
}
