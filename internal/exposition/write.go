package exposition

// This file writes metrics with their help and type.

import (
	"bytes"
	"io"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// Write writes what the sets hold: first the families of the table, each once, with
// help and type, then what else there is, as package metrics writes it.
func Write(w io.Writer, sets ...*metrics.Set) {
	var text bytes.Buffer
	for _, set := range sets {
		set.WritePrometheus(&text)
	}
	lines := map[*Family][]string{}
	var rest strings.Builder
	for line := range strings.Lines(text.String()) {
		if f, _ := familyOf(seriesName(line)); f == nil {
			rest.WriteString(line)
		} else if line[0] != '#' {
			lines[f] = append(lines[f], line)
		}
	}
	var b strings.Builder
	for i := range families {
		f := &families[i]
		if len(lines[f]) == 0 {
			continue
		}
		b.WriteString("# HELP " + f.Name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.Help) + "\n")
		b.WriteString("# TYPE " + f.Name + " " + f.Kind + "\n")
		for _, line := range lines[f] {
			b.WriteString(line)
		}
	}
	b.WriteString(rest.String())
	_, _ = io.WriteString(w, b.String()) // whoever reads no more has what it wants
}

// seriesName is the name of the series that a line is about, or of the first of the
// family that a comment is about.
func seriesName(line string) string {
	if comment, ok := strings.CutPrefix(line, "# "); ok {
		if words := strings.Fields(comment); len(words) > 1 && (words[0] == "HELP" || words[0] == "TYPE") {
			if f := byName[words[1]]; f != nil && f.Kind == "histogram" {
				return words[1] + "_bucket"
			}
			return words[1]
		}
		return ""
	}
	return line[:max(0, strings.IndexAny(line, "{ "))]
}
