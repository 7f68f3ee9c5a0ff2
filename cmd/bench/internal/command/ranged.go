package command

// This file is flags that have bounds.

import (
	"cmp"
	"flag"
	"fmt"
	"strconv"
	"time"
)

// A Kind of value says how to read one and what to call it.
type Kind[T any] struct {
	parse func(string) (T, error)
	name  string
}

var (
	Durations = Kind[time.Duration]{time.ParseDuration, "a duration such as 10s or 250ms"}
	Integers  = Kind[int]{strconv.Atoi, "an integer"}
	Unsigned  = Kind[uint64]{func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }, "an integer"}
	Floats    = Kind[float64]{func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, "a number"}
)

// A rangedValue is a flag.Value with bounds.
type rangedValue[T cmp.Ordered] struct {
	target    *T
	low, high T
	kind      Kind[T]
}

// Ranged defines a flag with bounds.
func Ranged[T cmp.Ordered](flags *flag.FlagSet, target *T, name string, preset, low, high T, k Kind[T], about string) {
	*target = preset
	flags.Var(&rangedValue[T]{target, low, high, k}, name, about)
}

// Set reads a value; the flag package puts its name and the text before the error.
func (v *rangedValue[T]) Set(text string) error {
	value, err := v.kind.parse(text)
	// Written so that NaN fails.
	if err != nil || !(value >= v.low && value <= v.high) {
		return fmt.Errorf("want %s from %v to %v", v.kind.name, v.low, v.high)
	}
	*v.target = value
	return nil
}

// String writes the value; the flag package also asks the zero value.
func (v *rangedValue[T]) String() string {
	if v.target == nil {
		return ""
	}
	return fmt.Sprint(*v.target)
}
