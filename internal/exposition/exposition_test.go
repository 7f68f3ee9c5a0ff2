package exposition

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"github.com/google/go-cmp/cmp"
)

const prefix = "global_rate_limiter_"

func written(sets ...*metrics.Set) string {
	var b bytes.Buffer
	Write(&b, sets...)
	return b.String()
}

// Each family has help and type once, whichever sets its series come from; what is not
// of the table is left as it is.
func TestWriteGroupsFamilies(t *testing.T) {
	t.Parallel()
	a, b := metrics.NewSet(), metrics.NewSet()
	a.NewGauge(prefix+`threshold{scope="a"}`, nil).Set(1)
	a.NewPrometheusHistogramExt(prefix+`tick_ms{scope="a"}`, []float64{1, 2}).Update(1.5)
	a.NewCounter(`mine_total{x="y"}`).Set(7)
	b.NewGauge(prefix+`threshold{scope="b"}`, nil).Set(2)
	got := written(a, b)
	for text, want := range map[string]int{
		"# HELP " + prefix + "threshold The global threshold": 1, "# TYPE " + prefix + "threshold gauge\n": 1,
		"# TYPE " + prefix + "tick_ms histogram\n": 1, "mine_total{x=\"y\"} 7\n": 1, "# ": 4,
		prefix + "threshold{scope=\"a\"} 1\n" + prefix + "threshold{scope=\"b\"} 2\n": 1,
		prefix + "tick_ms_bucket{scope=\"a\",le=\"2\"} 1\n":                           1,
	} {
		if strings.Count(got, text) != want {
			t.Errorf("%q occurs %d times, want %d, in\n%s", text, strings.Count(got, text), want, got)
		}
	}
}

// Package metrics' own comments, without a text, do not stand beside ours.
func TestWriteReplacesComments(t *testing.T) {
	set := metrics.NewSet()
	set.NewGauge(prefix+`threshold{scope="a"}`, nil)
	set.NewPrometheusHistogramExt(prefix+`tick_ms{scope="a"}`, []float64{1}).Update(1)
	set.NewCounter("mine_total")
	plain := written(set)
	metrics.ExposeMetadata(true)
	defer metrics.ExposeMetadata(false)
	if diff := cmp.Diff(plain, strings.Replace(written(set), "# HELP mine_total\n# TYPE mine_total counter\n", "", 1)); diff != "" {
		t.Errorf("with the library's comments (-without +with):\n%s", diff)
	}
}

func TestReadIsWhatWasWritten(t *testing.T) {
	t.Parallel()
	hostile := "a\"b\\c\nd\\n,e=\"f{}\xff \u00e9 } 5"
	set := metrics.NewSet()
	scope := `{scope="` + LabelValue(hostile) + `"`
	set.NewCounter(prefix + "eval_counts_total" + scope + `,result="allowed"}`).Set(7)
	set.NewCounter(prefix + "eval_counts_total" + scope + `,result="limited"}`).Set(1 << 53)
	set.NewGauge(prefix+"clock_skew_ms"+scope+`,partition="p"}`, nil).Set(-1.5)
	set.NewGauge(prefix+`clock_skew_ms{scope="other",partition="p"}`, nil).Set(3)
	set.NewCounter(`mine_total` + scope + `}`)
	h := set.NewPrometheusHistogramExt(prefix+"tick_ms"+scope+"}", []float64{1, 2})
	for _, v := range []float64{0.5, 1.5, 1.5, 9} {
		h.Update(v)
	}
	valid := strings.ToValidUTF8(hostile, "\uFFFD")
	families, err := Read(written(set), valid)
	if err != nil {
		t.Fatal(err)
	}
	in := Label{"scope", valid}
	want := map[string][]Sample{
		"clock_skew_ms": {{Labels: []Label{in, {"partition", "p"}}, Value: -1.5}},
		"eval_counts_total": {
			{Labels: []Label{in, {"result", "allowed"}}, Value: 7},
			{Labels: []Label{in, {"result", "limited"}}, Value: 1 << 53},
		},
		"tick_ms": {{Labels: []Label{in}, Buckets: []Bucket{{1, 1}, {2, 3}, {math.Inf(1), 4}}, Sum: 12.5, Count: 4}},
	}
	got := map[string][]Sample{}
	for _, f := range families {
		if f.Help == "" || f.Unit == "" || f.Kind != byName[f.Name].Kind {
			t.Errorf("%s: kind %q, unit %q, help %q", f.Name, f.Kind, f.Unit, f.Help)
		}
		got[strings.TrimPrefix(f.Name, prefix)] = f.Samples
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`threshold{scope="a"} x`, `threshold{scope="a"}`, `threshold{scope="a} 1`, `threshold{scope} 1`, `threshold{ 1`,
		`threshold{scope="a\`, `tick_ms_bucket{scope="a",le="x"} 1`,
	} {
		if got, err := Read(prefix+line+"\n", "a"); err == nil || !strings.Contains(err.Error(), "exposition: the line") {
			t.Errorf("Read(%q) = %v, %v, want an error", line, got, err)
		}
	}
	for _, text := range []string{"", "\n", "#\n", "# HELP\n", "{\n", " 1\n", "x 1\n", prefix + "threshold 1\n"} {
		if got, err := Read(text, "a"); err != nil || len(got) != 0 {
			t.Errorf("Read(%q) = %v, %v, want nothing", text, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(prefix+"threshold{scope=\"a\"} 1\n", "a")
	f.Add(prefix+"tick_ms_bucket{scope=\"a\",le=\"1\"} 1\n", "a")
	f.Fuzz(func(t *testing.T, text, scope string) {
		families, err := Read(text, scope)
		if err != nil && families != nil {
			t.Errorf("families beside %v", err)
		}
		for _, family := range families {
			for _, s := range family.Samples {
				if !slices.Contains(s.Labels, Label{"scope", scope}) {
					t.Errorf("%s: a series of another scope: %v", family.Name, s.Labels)
				}
			}
		}
	})
}

// Of sets that claim one name the first is exposed, then the next that lives, in a
// registry and in a set alike; withdrawing twice takes nobody else's claim.
func TestOneOfAName(t *testing.T) {
	t.Parallel()
	whole := metrics.NewSet()
	for where, expose := range map[string]func(set *metrics.Set) func(){
		"process": func(set *metrics.Set) func() { withdraw, _ := Expose("test "+t.Name(), set); return withdraw },
		"set":     func(set *metrics.Set) func() { return Join(whole, "test", set) },
	} {
		sets := make([]*metrics.Set, 3)
		withdraw := make([]func(), 3)
		for i := range sets {
			sets[i] = metrics.NewSet()
			sets[i].NewGauge(prefix+`threshold{scope="`+where+t.Name()+`"}`, nil).Set(float64(i + 1))
			withdraw[i] = expose(sets[i])
		}
		for i, row := range []struct {
			closes int
			want   string
		}{{-1, " 1\n"}, {1, " 1\n"}, {1, " 1\n"}, {0, " 3\n"}, {0, " 3\n"}, {2, ""}} {
			if row.closes >= 0 {
				withdraw[row.closes]()
			}
			var text bytes.Buffer
			if where == "set" {
				Write(&text, whole)
			} else {
				metrics.WritePrometheus(&text, false)
			}
			_, got, _ := strings.Cut(text.String(), where+t.Name()+`"}`)
			if got, _, _ = strings.Cut(got, "\n"); strings.TrimSuffix(row.want, "\n") != got || strings.Count(text.String(), where+t.Name()) > 1 {
				t.Errorf("%s, row %d: exposed %q, want %q", where, i, got, row.want)
			}
		}
	}
}

func TestClaimsAtOnce(t *testing.T) {
	t.Parallel()
	whole := metrics.NewSet()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				set := metrics.NewSet()
				set.NewGauge(prefix+`threshold{scope="x"}`, nil)
				withdraw := Join(whole, "x", set)
				if n := strings.Count(written(whole), `{scope="x"}`); n > 1 {
					t.Errorf("exposed %d times", n)
				}
				withdraw()
			}
		})
	}
	all.Wait()
	if got := written(whole); got != "" {
		t.Errorf("in the end: %s", got)
	}
}

// What is joined to a set goes with it.
func TestJoinedSetsAreLetGo(t *testing.T) {
	count := func() int {
		joinedMu.Lock()
		defer joinedMu.Unlock()
		return len(joined)
	}
	before := count()
	for range 100 {
		Join(metrics.NewSet(), "x", metrics.NewSet())
	}
	for range 100 {
		if runtime.GC(); count() <= before+1 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d of 100 sets are held", count()-before)
}

func TestTheTableIsSorted(t *testing.T) {
	t.Parallel()
	if all := Families(); len(all) < 30 || !slices.IsSortedFunc(all, func(a, b Family) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d families, or out of order", len(all))
	}
}
