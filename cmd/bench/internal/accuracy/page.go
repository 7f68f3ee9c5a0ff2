package accuracy

// This file writes docs/accuracy.md: page.md with the figures in it.

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
)

//go:embed page.md
var pageText string // immutable

// writePage writes the page.
func writePage(w io.Writer, rows []row) error {
	page, err := template.New("page").Funcs(pageFuncs(rows)).Parse(pageText)
	if err != nil {
		return err
	}
	return page.Execute(w, nil)
}

// pageFuncs is what the page can show.
func pageFuncs(rows []row) template.FuncMap {
	specs := make([]*scenario, 0, len(rows)/len(schedules))
	for i := 0; i < len(rows); i += len(schedules) {
		specs = append(specs, rows[i].spec)
	}
	named := func(scenario string, by schedule) *row {
		for i := range rows {
			if rows[i].Scenario == scenario && rows[i].Schedule == by {
				return &rows[i]
			}
		}
		panic("accuracy: the page shows a scenario that there is not: " + scenario)
	}
	return template.FuncMap{
		"scenarios": func() int { return len(specs) },
		"windows":   func() int { return windowsPerRun },
		"phases":    func() int { return phases },
		"worst":     func() string { return worstTable(rows, specs) },
		"mean": func() string {
			return columns(rows, specs, []schedule{perfect, oneNode, ours, hot, document}, nil, func(r *row) []string {
				return []string{fmt.Sprintf("%.3f", r.Mean)}
			})
		},
		"limits": func() string {
			return columns(rows, specs, []schedule{oneNode, ours, hot, document}, []string{"false", "first"}, func(r *row) []string {
				return []string{fmt.Sprint(r.FalseLimits), strings.TrimSuffix(r.firstText(), " s")}
			})
		},
		"costs": func() string {
			return columns(rows, specs, []schedule{ours, hot, document}, []string{"reads", "writes", "scripts"}, func(r *row) []string {
				return []string{fmt.Sprintf("%.2f", r.Reads), fmt.Sprintf("%.2f", r.Writes), fmt.Sprintf("%.2f", r.scripts)}
			})
		},
		"value": func(scenario string, by schedule) string { return fmt.Sprintf("%.2f", named(scenario, by).Mean) },
		"series": func(scenarios ...string) string {
			var values []string
			for _, s := range scenarios {
				values = append(values, fmt.Sprintf("%.3f", named(s, ours).Worst))
			}
			return strings.Join(values, ", ")
		},
		"margin":  func() string { return marginText(rows) },
		"hottest": func() string { return hottestText(rows) },
	}
}

// worstTable is the table of the worst windows, with the bound.
func worstTable(rows []row, specs []*scenario) string {
	var b strings.Builder
	b.WriteString("| scenario | exact | one node | ours | bound | hot | document |\n|---|---|---|---|---|---|---|\n")
	for _, s := range specs {
		floor := find(rows, s, oneNode).Worst
		fmt.Fprintf(&b, "| %s | %.3f | %.3f | **%.3f** | %.3f | %.3f | %.3f |\n", s.name,
			find(rows, s, perfect).Worst, floor, find(rows, s, ours).Worst, s.bound(floor), find(rows, s, hot).Worst, find(rows, s, document).Worst)
	}
	return b.String()
}

// columns is a table with one or more columns for each of some schedules.
func columns(rows []row, specs []*scenario, by []schedule, parts []string, cells func(*row) []string) string {
	if parts == nil {
		parts = []string{""}
	}
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, s := range by {
		for _, part := range parts {
			fmt.Fprintf(&b, " %s |", strings.TrimSpace(strings.ReplaceAll(string(s), "-", " ")+" "+part))
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(by)*len(parts)) + "\n")
	for _, spec := range specs {
		fmt.Fprintf(&b, "| %s |", spec.name)
		for _, s := range by {
			for _, cell := range cells(find(rows, spec, s)) {
				fmt.Fprintf(&b, " %s |", cell)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// marginText says where ours comes closest to its bound.
func marginText(rows []row) string {
	var closest *row
	margin := 0.0
	for i := range rows {
		r := &rows[i]
		if r.Schedule != ours {
			continue
		}
		if m := r.spec.bound(find(rows, r.spec, oneNode).Worst) - r.Worst; closest == nil || m < margin {
			closest, margin = r, m
		}
	}
	return fmt.Sprintf(", most narrowly by %.3f (%s)", margin, closest.Scenario)
}

// hottestText says where hot comes farthest above the floor.
func hottestText(rows []row) string {
	text, most := "", 0.0
	for i := range rows {
		r := &rows[i]
		if r.Schedule != hot || !r.spec.steady || r.spec.threshold != usualThreshold {
			continue
		}
		if times := r.Worst / find(rows, r.spec, oneNode).Worst; times > most {
			text, most = fmt.Sprintf("%.3f × (%s)", times, r.Scenario), times
		}
	}
	return text
}
