package onekey

// This file says why things are as they are, from what was observed.

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// names are the nodes'.
var names = [nodes]string{"A", "B"}

// why explains a second to a reader who has read those before.
func (s *second) why() string {
	var parts []string
	if s.boundary {
		parts = append(parts, "An epoch begins: Redis counts into a new counter, and the old one weighs less every second.")
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.first {
			parts = append(parts, fmt.Sprintf("%s sees the key for the first time and lets it pass.", names[i]))
		}
		if refused := n.asked - n.passed; refused > 0 {
			parts = append(parts, fmt.Sprintf("%s refuses %d: one more would make its level %s; come back in %s.",
				names[i], refused, number(n.reached), wait(n.retry)))
		}
		if n.sent > 0 {
			parts = append(parts, fmt.Sprintf("%s sends %s%s.", names[i], units(n.sent), scripts(n.scripts)))
		} else if n.scripts > 0 {
			parts = append(parts, fmt.Sprintf("%s asks Redis, and learns what the other counted.", names[i]))
		}
	}
	if len(parts) == 0 {
		switch {
		case s.nodes[0].asked+s.nodes[1].asked > 0:
			return "Allowed in memory; Redis learns of it with the next tick."
		default:
			return "Nothing is asked."
		}
	}
	return strings.Join(parts, " ")
}

// scripts says in how many scripts, if in more than one.
func scripts(n uint64) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" in %d scripts, before the tick too, since its part of what the fleet may hide was full", n)
}

func units(n uint64) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}

// number is a level, with a decimal if it has one.
func number(level float64) string {
	text := fmt.Sprintf("%.1f", level)
	return strings.TrimSuffix(text, ".0")
}

// wait is a duration in seconds, rounded up.
func wait(d time.Duration) string { return fmt.Sprintf("%.1f s", math.Ceil(d.Seconds()*10)/10) }
