package overrides

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]uint64{
		`{}`:                                   {},
		" \t\r\n{ } \n":                        {},
		`{"a":1}`:                              {"a": 1},
		`{"a": 0, "b": 2}`:                     {"a": 0, "b": 2},
		`{"":7}`:                               {"": 7},
		`{"a\u0062\n\"{":3}`:                   {"ab\n\"{": 3},
		`{"\ud83d\ude00":1}`:                   {"😀": 1},
		`{"a":18446744073709551615}`:           {"a": math.MaxUint64},
		`{"a":9007199254740993}`:               {"a": 1<<53 + 1},
		`{"A":1,"a":2,"\u00e1":3,"a\u0301":4}`: {"A": 1, "a": 2, "\u00e1": 3, "a\u0301": 4},
	} {
		got, err := Parse([]byte(text))
		if err != nil {
			t.Errorf("Parse(%s): %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse(%s) (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                                     "end of JSON",
		` `:                                    "end of JSON",
		`null`:                                 "not an object",
		`[]`:                                   "not an object",
		`1`:                                    "not an object",
		`"{}"`:                                 "not an object",
		`{`:                                    "end of JSON",
		`{"a":1`:                               "end of JSON",
		`{"a":1}}`:                             "after top-level value",
		`{"a":1} {"b":2}`:                      "after top-level value",
		`{"a" 1}`:                              "invalid character",
		`{"a":1,}`:                             "invalid character",
		`{a:1}`:                                "invalid character",
		`{"a":01}`:                             "invalid character",
		`{"a":+1}`:                             "invalid character",
		`{"a":NaN}`:                            "invalid character",
		`{"a":-1}`:                             `"a" is -1`,
		`{"a":-0}`:                             `"a" is -0`,
		`{"a":1.0}`:                            `"a" is 1.0`,
		`{"a":1e3}`:                            `"a" is 1e3`,
		`{"a":18446744073709551616}`:           `"a" is 18446744073709551616`,
		`{"a":"1"}`:                            `"a" is no number`,
		`{"a":null}`:                           `"a" is no number`,
		`{"a":true}`:                           `"a" is no number`,
		`{"a":{}}`:                             `"a" is no number`,
		`{"a":[1]}`:                            `"a" is no number`,
		`{"a":1,"b":2,"a":1}`:                  `"a" occurs twice`,
		`{"a":1,"\u0061":2}`:                   `"a" occurs twice`,
		`{"\ud83d":1}`:                         "half a character",
		`{"\ufffd":1}`:                         "half a character",
		"{\"\xff\":1}":                         "not UTF-8",
		"\xef\xbb\xbf{}":                       "invalid character",
		strings.Repeat(" ", MaxBytes):          "end of JSON",
		strings.Repeat(" ", MaxBytes-1) + "{}": "larger than 4194304 bytes",
		`{"` + strings.Repeat("ä", 100) + `":1.5}`:              strings.Repeat("ä", 32) + `…" is 1.5`,
		`{"a":1` + strings.Repeat("0", 100) + `}`:               "1" + strings.Repeat("0", 63) + "…,",
		strings.Repeat("[", 20000) + strings.Repeat("]", 20000): "max depth",
	} {
		got, err := Parse([]byte(text))
		if got != nil || !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40s) = %v, %v, want malformed with %q", text, got, err, want)
		}
	}
	if _, err := Parse([]byte(strings.Repeat(" ", MaxBytes-2) + "{}")); err != nil {
		t.Errorf("the largest text: %v", err)
	}
}

// FuzzParse looks for text that is accepted though encoding/json, which decodes
// into a map, disagrees on what it says.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{}`, `{"a":1}`, `{"a":18446744073709551615,"b":0}`, `{"a":1,"a":2}`, `{"a":1.0}`, `{"\ud800":1}`, `[]`, ``} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Parse(text)
		if err != nil {
			if got != nil || !errors.Is(err, ErrMalformed) || !utf8.ValidString(err.Error()) {
				t.Fatalf("Parse = %v, %v", got, err)
			}
			return
		}
		var want map[string]uint64
		if err := json.Unmarshal(text, &want); err != nil || !maps.Equal(got, want) {
			t.Fatalf("Parse = %v, encoding/json says %v, %v", got, want, err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := Parse(again); err != nil || !maps.Equal(got, parsed) {
			t.Fatalf("Parse(%s) = %v, %v, want %v", again, parsed, err, got)
		}
	})
}
