// A Config from environment variables.

package ratelimit

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// bareNumber is a number without a unit; the group holds its decimals.
var bareNumber = regexp.MustCompile(`^[0-9]+(?:\.([0-9]+))?$`)

// ConfigFromEnv is [ConfigFromEnvPrefix] with [DefaultPrefix].
func ConfigFromEnv() (Config, error) { return ConfigFromEnvPrefix(DefaultPrefix) }

// ConfigFromEnvPrefix returns the defaults with what the environment variables
// with this prefix say, validated. Spaces around a value are trimmed; a variable
// that is empty counts as unset; others than those of the fields are ignored.
//
// A bare number in a variable named _SECS or _MS is in that unit and may have
// decimals down to the nanosecond; a Go duration such as 90s or 1m30s is accepted
// in its place. A flag is what [strconv.ParseBool] accepts, a list of URLs is
// separated by commas, overrides are as in [ParseOverrides].
//
// Everything else is an error. All errors are returned together, as by
// [Config.Validate]; the Config is then the zero one.
func ConfigFromEnvPrefix(prefix string) (Config, error) {
	return configFromEnviron(prefix, env.ToMap(os.Environ()))
}

// configFromEnviron is ConfigFromEnvPrefix in the given environment.
func configFromEnviron(prefix string, environ map[string]string) (Config, error) {
	c := DefaultConfig()
	if prefix != DefaultPrefix {
		c.envPrefix = &prefix
	}
	raw := map[string]string{}  // by variable, trimmed
	read := map[string]string{} // the same, units appended
	for id := range configFields {
		name := c.variable(id)
		if value := strings.TrimSpace(environ[name]); value != "" {
			raw[name], read[name] = value, withUnit(value, configFields[id].unit)
		}
	}
	err := env.ParseWithOptions(&c, env.Options{Environment: read, Prefix: prefix, FuncMap: valueParsers()})
	problems, bad, err := c.parseProblems(err, raw)
	if err != nil {
		return Config{}, err
	}
	problems = append(problems, c.problems(true, bad)...)
	if err := joinProblems(problems); err != nil {
		return Config{}, err
	}
	return c, nil
}

// parseProblems turns what the parser said into problems of fields, and says
// which fields have one. The error is one that no variable can cause.
func (c *Config) parseProblems(err error, raw map[string]string) (problems []problem, bad [fieldCount]bool, _ error) {
	if err == nil {
		return nil, bad, nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return nil, bad, fmt.Errorf("ratelimit: environment: %w", err)
	}
	for _, err := range all.Errors {
		var parse env.ParseError
		id := -1
		if errors.As(err, &parse) {
			id = slices.IndexFunc(configFields[:], func(f configField) bool { return f.name == parse.Name })
		}
		if id < 0 {
			return nil, bad, fmt.Errorf("ratelimit: environment: %w", err)
		}
		bad[id] = true
		if elements, ok := parse.Err.(elementErrors); ok {
			for _, err := range elements {
				problems = append(problems, problem{id, fmt.Errorf("%s: %w", c.label(id), err)})
			}
			continue
		}
		want := wanted(&configFields[id], c)
		problems = append(problems, problem{id, fmt.Errorf("%s: %s: want %s", c.label(id), shown(raw[c.variable(id)]), want)})
	}
	return problems, bad, nil
}

// wanted says how a variable is written and what it may hold.
func wanted(f *configField, c *Config) string {
	switch f.value(c).(type) {
	case time.Duration:
		unit := "seconds"
		if f.unit == time.Millisecond {
			unit = "milliseconds"
		}
		return "a number of " + unit + " or a Go duration such as 1m30s, " + f.bounds
	case bool:
		return f.bounds
	}
	return "a whole number in decimal digits, " + f.bounds
}

// withUnit appends the unit to a bare number that is a whole number of
// nanoseconds of it. Anything else is left to the parser.
func withUnit(value string, unit time.Duration) string {
	if unit == 0 {
		return value
	}
	match := bareNumber.FindStringSubmatch(value)
	name, decimals := "s", 9
	if unit == time.Millisecond {
		name, decimals = "ms", 6
	}
	if match == nil || len(match[1]) > decimals {
		return value
	}
	return value + name
}

// elementErrors are the errors of a list, one for each bad element.
type elementErrors []error

func (e elementErrors) Error() string { return errors.Join(e...).Error() }

// valueParsers returns a parser for each type of field that is not a string.
func valueParsers() map[reflect.Type]env.ParserFunc {
	return map[reflect.Type]env.ParserFunc{
		reflect.TypeFor[time.Duration](): func(v string) (any, error) { return parseDuration(v) },
		reflect.TypeFor[bool]():          func(v string) (any, error) { return strconv.ParseBool(v) },
		reflect.TypeFor[uint64]():        func(v string) (any, error) { return strconv.ParseUint(v, 10, 64) },
		reflect.TypeFor[int](): func(v string) (any, error) {
			n, err := strconv.ParseUint(v, 10, strconv.IntSize-1)
			return int(n), err
		},
		reflect.TypeFor[[]string](): func(v string) (any, error) { return splitList(v), nil },
		reflect.TypeFor[Overrides](): func(v string) (any, error) {
			overrides, errs := parseOverrides(v)
			if len(errs) > 0 {
				return nil, elementErrors(errs)
			}
			return overrides, nil
		},
	}
}

// parseDuration is time.ParseDuration, but refuses what that rounds to nothing: 0
// means something else.
func parseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err == nil && d == 0 && strings.ContainsAny(v, "123456789") {
		return 0, errors.New("below a nanosecond")
	}
	return d, err
}

// splitList returns the elements between commas, trimmed, without empty ones.
func splitList(v string) []string {
	var elements []string
	for element := range strings.SplitSeq(v, ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}
