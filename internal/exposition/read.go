package exposition

// This file reads what Write wrote, for those who hand metrics on in another form.

import (
	"fmt"
	"strconv"
	"strings"
)

// A Sample is one time series at one moment.
type Sample struct {
	Labels []Label // in the order in which they are written
	Value  float64 // of a counter or gauge

	// Of a histogram:

	Buckets []Bucket // ascending, the infinite one last
	Sum     float64
	Count   uint64
}

// A Label is a label and its value.
type Label struct{ Name, Value string }

// A Bucket counts what is at most its bound.
type Bucket struct {
	UpperBound float64
	Count      uint64
}

// Read returns the families of the table in the text that have the label scope with
// this value, in the order of their names. What is not of the table is left out.
func Read(text, scope string) ([]Family, error) {
	samples := map[*Family][]Sample{}
	index := map[string]int{} // of a family's samples, by its name and labels
	for line := range strings.Lines(text) {
		name := seriesName(line)
		f, part := familyOf(name)
		if f == nil || line[0] == '#' {
			continue
		}
		labels, rest, err := labelsOf(line[len(name):])
		if err != nil {
			return nil, fmt.Errorf("exposition: the line %q: %w", line, err)
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil {
			return nil, fmt.Errorf("exposition: the line %q: %w", line, err)
		}
		bound, inScope, id := 0.0, false, f.Name
		kept := labels[:0]
		for _, l := range labels {
			if l.Name == "le" && part == "_bucket" {
				if bound, err = strconv.ParseFloat(l.Value, 64); err != nil {
					return nil, fmt.Errorf("exposition: the line %q: %w", line, err)
				}
				continue
			}
			inScope = inScope || l.Name == "scope" && l.Value == scope
			kept = append(kept, l)
			id += "\x00" + l.Name + "\x00" + l.Value
		}
		if !inScope {
			continue
		}
		i, known := index[id]
		if !known {
			i = len(samples[f])
			index[id] = i
			samples[f] = append(samples[f], Sample{Labels: kept})
		}
		samples[f][i].add(part, bound, value)
	}
	var found []Family
	for i := range families {
		if s := samples[&families[i]]; len(s) > 0 {
			f := families[i]
			f.Samples = s
			found = append(found, f)
		}
	}
	return found, nil
}

// add puts a line's value where it belongs.
func (s *Sample) add(part string, bound, value float64) {
	switch part {
	case "_bucket":
		s.Buckets = append(s.Buckets, Bucket{bound, uint64(value)})
	case "_sum":
		s.Sum = value
	case "_count":
		s.Count = uint64(value)
	default:
		s.Value = value
	}
}

// labelsOf takes the labels off the rest of a line.
func labelsOf(text string) (labels []Label, rest string, err error) {
	text, braced := strings.CutPrefix(text, "{")
	if !braced {
		return nil, text, nil
	}
	for !strings.HasPrefix(text, "}") {
		name, after, ok := strings.Cut(text, `="`)
		if !ok {
			return nil, "", fmt.Errorf("a label without a value")
		}
		var value strings.Builder
		i := 0
		for ; i < len(after) && after[i] != '"'; i++ {
			switch {
			case after[i] != '\\' || i+1 == len(after):
				value.WriteByte(after[i])
				continue
			case after[i+1] == 'n':
				value.WriteByte('\n')
			default:
				value.WriteByte(after[i+1])
			}
			i++
		}
		if i >= len(after) {
			return nil, "", fmt.Errorf("a value that does not end")
		}
		labels = append(labels, Label{strings.TrimPrefix(name, ","), value.String()})
		text = after[i+1:]
	}
	return labels, text[1:], nil
}
