package throughput

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestProgressIsALineNowAndThenElsewhereThanOnATerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newProgress(&out, 10*time.Second)
	if p.step() != 2*time.Second {
		t.Errorf("a line every %v, want 2s", p.step())
	}
	p.show(2*time.Second, 2_469_135)
	p.show(4*time.Second, 4_000_000)
	p.end()
	if want := "2.0 s of 10.0 s: 1,234,567 checks/s\n4.0 s of 10.0 s: 1,000,000 checks/s\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", &out, want)
	}
}

func TestTheBarShowsTheRate(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBar(&out, time.Second)
	b.show(500*time.Millisecond, 1_000_000)
	b.show(2*time.Second, 1_000_000) // beyond its end
	b.end()
	if !strings.Contains(out.String(), "2,000,000 checks/s") {
		t.Errorf("drew %q", &out)
	}
}

func TestRateOfNoTimeIsZero(t *testing.T) {
	t.Parallel()
	if got := perSecond(5, 0); got != 0 {
		t.Errorf("perSecond(5, 0) = %d", got)
	}
}
