package ratelimittest

// This file is how much is offered when.

import "time"

// A Load says how many units per second are offered, by all nodes and of all keys
// together, at a time since the traffic began. It is a function of that time alone.
type Load func(at time.Duration) float64

// Steady is the same rate all the time.
func Steady(rate float64) Load {
	return func(time.Duration) float64 { return rate }
}

// OnOff is a rate for the time on, nothing for the time off, and so on.
func OnOff(rate float64, on, off time.Duration) Load {
	return Spikes(0, rate, on+off, on)
}

// Spikes is a base rate and, at the beginning of every period, a peak rate for some
// time.
func Spikes(base, peak float64, every, length time.Duration) Load {
	return func(at time.Duration) float64 {
		if at%every < length {
			return peak
		}
		return base
	}
}

// Burst is one rate for some time, and nothing after it.
func Burst(rate float64, length time.Duration) Load {
	return func(at time.Duration) float64 {
		if at < length {
			return rate
		}
		return 0
	}
}

// Jump is one rate until a time, and another from then on.
func Jump(before, after float64, when time.Duration) Load {
	return func(at time.Duration) float64 {
		if at < when {
			return before
		}
		return after
	}
}

// Ramp goes from one rate to another over some time, evenly, and stays there.
func Ramp(from, to float64, over time.Duration) Load {
	return func(at time.Duration) float64 {
		if at >= over {
			return to
		}
		return from + (to-from)*at.Seconds()/over.Seconds()
	}
}
