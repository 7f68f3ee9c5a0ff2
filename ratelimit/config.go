// What a Config says about itself: with its derived fields filled in, and as
// text for people, secrets masked. The struct is generated, see config_gen.go.

package ratelimit

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hanzoai/limiters/internal/redisurl"
)

// shownBytes is how much of a value an error shows.
const shownBytes = 200

// settingOverrides is how many overrides a setting's text shows.
const settingOverrides = 10

// A configField says what errors and settings need to know of a field.
type configField struct {
	name string
	env  string        // the variable, after the prefix
	unit time.Duration // what a bare number in the variable counts; 0 if not a duration

	min, max int64 // of a number, the bytes of a string, or the elements of a list
	step     int64 // a number is a multiple of it; 0: any
	zero     bool  // zero is accepted, and means off
	derived  bool  // zero is accepted, and the field then follows from
	from     int   // a field that stands above
	bounds   string
	values   []string // all that a named string may be

	value func(*Config) any
}

// A Setting is one field of a Config, for people.
type Setting struct {
	Field string // of Config
	Env   string // the whole name of its environment variable
	Value string // secrets masked
}

// Resolved returns c with its derived fields filled in: each that is 0 follows
// from the field it derives from, as that is set. Of a Config that is not valid
// it says nothing useful.
func (c Config) Resolved() Config {
	c.derive()
	return c
}

// Settings returns every field as text, in the order of the struct, resolved.
// User, password and query of a URL are masked.
func (c Config) Settings() []Setting {
	r := c.Resolved()
	settings := make([]Setting, 0, fieldCount)
	for id := range configFields {
		f := &configFields[id]
		settings = append(settings, Setting{Field: f.name, Env: c.variable(id), Value: valueText(f.value(&r))})
	}
	return settings
}

// String returns the settings in one line. It keeps passwords out of what prints
// a Config.
func (c Config) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, s := range c.Settings() {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.Field + ":" + s.Value)
	}
	b.WriteByte('}')
	return b.String()
}

// GoString is String, for %#v.
func (c Config) GoString() string { return "ratelimit.Config" + c.String() }

// LogValue returns the settings as a group, for log/slog.
func (c Config) LogValue() slog.Value {
	settings := c.Settings()
	attrs := make([]slog.Attr, len(settings))
	for i, s := range settings {
		attrs[i] = slog.String(s.Field, s.Value)
	}
	return slog.GroupValue(attrs...)
}

// variable is the whole name of a field's environment variable.
func (c *Config) variable(id int) string {
	prefix := DefaultPrefix
	if c.envPrefix != nil {
		prefix = *c.envPrefix
	}
	return prefix + configFields[id].env
}

// valueText is a field's value for people, secrets masked.
func valueText(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return durationText(v)
	case string:
		return strconv.Quote(v)
	case WindowKind:
		return strconv.Quote(string(v))
	case Calendar:
		return strconv.Quote(string(v))
	case []string:
		return strconv.Quote(strings.Join(redisurl.MaskList(v), ","))
	case Overrides:
		return overridesText(v)
	}
	return fmt.Sprint(value)
}

// overridesText is the first overrides by key, and how many there are.
func overridesText(overrides Overrides) string {
	keys := make([]string, 0, len(overrides))
	for key := range overrides {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	more := ""
	if len(keys) > settingOverrides {
		more = fmt.Sprintf(" and %d more", len(keys)-settingOverrides)
		keys = keys[:settingOverrides]
	}
	elements := make([]string, len(keys))
	for i, key := range keys {
		elements[i] = key + "=" + strconv.FormatUint(overrides[key], 10)
	}
	return strconv.Quote(strings.Join(elements, ",")) + more
}

// durationText is d without the zero minutes and seconds that
// time.Duration.String appends.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// shown quotes a value for an error: cut if long, masked if it looks like a URL.
func shown(value string) string {
	if strings.Contains(value, "://") {
		value = strings.Join(redisurl.MaskList(strings.Split(value, ",")), ",")
	}
	if len(value) > shownBytes {
		cut := shownBytes
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		return strconv.Quote(value[:cut]) + "…"
	}
	return strconv.Quote(value)
}
