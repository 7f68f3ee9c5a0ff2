// Tests of overrides as text.

package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseOverrides(t *testing.T) {
	t.Parallel()
	for csv, want := range map[string]Overrides{
		"":                                {},
		" , ,,":                           {},
		"a=1":                             {"a": 1},
		"a=1,":                            {"a": 1},
		",a=1,,b=2, ":                     {"a": 1, "b": 2},
		" a = 1 ,\tb\t=\t2\n":             {"a": 1, "b": 2},
		"a=b=3":                           {"a=b": 3},
		"a==4":                            {"a=": 4},
		"=5":                              {"": 5},
		"team one=6":                      {"team one": 6},
		"a=0":                             {"a": 0},
		"a=007":                           {"a": 7},
		"a=18446744073709551615":          {"a": math.MaxUint64},
		"a:b{c}/\u00e9=1,A:b{c}/\u00e9=2": {"a:b{c}/é": 1, "A:b{c}/é": 2},
		"\xff=1":                          {"\xff": 1},
	} {
		got, err := ParseOverrides(csv)
		if err != nil {
			t.Errorf("ParseOverrides(%q) = %v", csv, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseOverrides(%q) (-want +got):\n%s", csv, diff)
		}
	}
}

func TestParseOverridesFaults(t *testing.T) {
	t.Parallel()
	const limit = ": want a limit in decimal digits, 0 … 18446744073709551615"
	const separators = ": want commas between overrides; the key holds "
	for _, row := range []struct{ csv, want string }{
		{"a", `element 1 "a": want key=limit`},
		{"a=", `element 1 "a="` + limit},
		{"a=x", `element 1 "a=x"` + limit},
		{"a=-1", `element 1 "a=-1"` + limit},
		{"a=+1", `element 1 "a=+1"` + limit},
		{"a=1.5", `element 1 "a=1.5"` + limit},
		{"a=1e3", `element 1 "a=1e3"` + limit},
		{"a=1_000", `element 1 "a=1_000"` + limit},
		{"a=0x10", `element 1 "a=0x10"` + limit},
		{"a=NaN", `element 1 "a=NaN"` + limit},
		{"a=1 0", `element 1 "a=1 0"` + limit},
		{"a=1;b=2", `element 1 "a=1;b=2"` + separators + "a semicolon"},
		{"a;=2", `element 1 "a;=2"` + separators + "a semicolon"},
		{"team_7=0\nteam_8=5", `element 1 "team_7=0\nteam_8=5"` + separators + "the character U+000A"},
		{"a=1\r\nb=2,c=3\td=4", `element 1 "a=1\r\nb=2"` + separators + "the character U+000D\n" + `element 2 "c=3\td=4"` + separators + "the character U+0009"},
		{"a\x00=1,a\x00=1", `element 1 "a\x00=1"` + separators + "the character U+0000\n" + `element 2 "a\x00=1"` + separators + "the character U+0000"},
		{"\ufeffa=1", `element 1 "\ufeffa=1"` + separators + "the character U+FEFF"},
		{"a\u200b=1", `element 1 "a\u200b=1"` + separators + "the character U+200B"},
		{"a=1\u2028b=1", `element 1 "a=1\u2028b=1"` + separators + "the character U+2028"},
		{"a\u0085b=1", `element 1 "a\u0085b=1"` + separators + "the character U+0085"},
		{"team_7=0 team_8=5", `element 1 "team_7=0 team_8=5"` + separators + "an equals sign and white space"},
		{"a=1\u00a0b=2", `element 1 "a=1\u00a0b=2"` + separators + "an equals sign and white space"},
		{"a=18446744073709551616", `element 1 "a=18446744073709551616"` + limit},
		{"a=1,b=2,a=1", `element 3 "a=1": want each key once, it is in element 1 already`},
		{"a=1, a =2", `element 2 "a =2": want each key once, it is in element 1 already`},
		{"=1,=2", `element 2 "=2": want each key once, it is in element 1 already`},
		{"a=x,a=1", `element 1 "a=x"` + limit + "\n" + `element 2 "a=1": want each key once, it is in element 1 already`},
		{"a=1,b,,c=z,d=4", `element 2 "b": want key=limit` + "\n" + `element 4 "c=z"` + limit},
		{"redis://:secret@host:1=x", `element 1 "redis://***@host:1=x"` + limit},
	} {
		got, err := ParseOverrides(row.csv)
		if row.want == "" {
			if err != nil {
				t.Errorf("ParseOverrides(%q) = %v", row.csv, err)
			}
			continue
		}
		want := "ratelimit: overrides: " + strings.ReplaceAll(row.want, "\n", "\nratelimit: overrides: ")
		if err == nil || err.Error() != want {
			t.Errorf("ParseOverrides(%q):\n got %v\nwant %s", row.csv, err, want)
		}
		if got != nil {
			t.Errorf("ParseOverrides(%q) = %v beside its error, want nil", row.csv, got)
		}
	}
}

// FuzzParseOverrides: whatever the text, an error or the same overrides again
// from what they are written as.
func FuzzParseOverrides(f *testing.F) {
	for _, csv := range []string{"", "a=1", "a=1,b=2,", " a = 1 ", "a=b=3", "=5", "a=x,b", "a=18446744073709551616", "a=1,a=1", "\xff=1"} {
		f.Add(csv)
	}
	f.Fuzz(func(t *testing.T, csv string) {
		overrides, err := ParseOverrides(csv)
		if (err == nil) != (overrides != nil) {
			t.Fatalf("ParseOverrides(%q) = %v, %v", csv, overrides, err)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "ratelimit: overrides: element ") {
					t.Fatalf("ParseOverrides(%q): error line %q", csv, line)
				}
			}
			return
		}
		var elements []string
		for key, limit := range overrides {
			elements = append(elements, fmt.Sprintf("%s=%d", key, limit))
		}
		slices.Sort(elements)
		again, err := ParseOverrides(strings.Join(elements, ","))
		if err != nil {
			t.Fatalf("ParseOverrides of what %q became = %v", csv, err)
		}
		if diff := cmp.Diff(overrides, again); diff != "" {
			t.Fatalf("%q written and read again (-first +again):\n%s", csv, diff)
		}
	})
}
