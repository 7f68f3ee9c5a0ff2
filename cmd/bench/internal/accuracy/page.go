package accuracy

// This file writes docs/accuracy.md: page.md with the figures in it.

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
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
	var specs []*scenario
	for i := range rows {
		if i == 0 || rows[i].spec != rows[i-1].spec {
			specs = append(specs, rows[i].spec)
		}
	}
	of := func(scenario string, by schedule) *row {
		for i := range rows {
			if rows[i].Scenario == scenario && rows[i].Schedule == by {
				return &rows[i]
			}
		}
		panic(fmt.Sprintf("accuracy: the page shows %s by %s, which there is not", scenario, by))
	}
	return template.FuncMap{
		"scenarios": func() int { return len(specs) },
		"windows":   func() int { return windowsPerRun },
		"phases":    func() int { return phases },
		"tables":    func(what string) (string, error) { return pageTable(what, rows, specs) },
		"worst":     func(scenario string, by schedule) string { return fmt.Sprintf("%.2f", of(scenario, by).Worst) },
		"mean":      func(scenario string, by schedule) string { return fmt.Sprintf("%.3f", of(scenario, by).Mean) },
		"scripts":   func(scenario string, by schedule) string { return fmt.Sprintf("%.2f", of(scenario, by).Scripts) },
		"false":     func(scenario string, by schedule) uint64 { return of(scenario, by).FalseLimits },
		"series": func(by schedule, scenarios ...string) string {
			var values []string
			for _, s := range scenarios {
				values = append(values, fmt.Sprintf("%.3f", of(s, by).Worst))
			}
			return strings.Join(values, ", ")
		},
		"meanError": func() string { return fmt.Sprintf("%.3f", meanError(rows)) },
		"margin":    func(by schedule) string { return marginText(rows, by) },
		"missed":    func() string { return missedText(rows) },
	}
}

// A column of a table. An empty cell is a dash.
type column struct {
	title string
	cell  func(rows []row, s *scenario) string
}

// number is a column of one number of the rows by a schedule.
func number(by schedule, title, format string, value func(*row) any) column {
	return column{title, func(rows []row, s *scenario) string {
		r := lookup(rows, s, by)
		if r == nil {
			return ""
		}
		return fmt.Sprintf(format, value(r))
	}}
}

func worstColumn(by schedule, format string) column {
	return number(by, strings.ReplaceAll(string(by), "-", " "), format, func(r *row) any { return r.Worst })
}

func meanColumn(by schedule) column {
	return number(by, strings.ReplaceAll(string(by), "-", " "), "%.3f", func(r *row) any { return r.Mean })
}

func falseColumn(by schedule) column {
	return number(by, strings.ReplaceAll(string(by), "-", " "), "%d", func(r *row) any { return r.FalseLimits })
}

func costColumn(by schedule, what string, value func(*row) any) column {
	return number(by, strings.ReplaceAll(string(by), "-", " ")+" "+what, "%.2f", value)
}

// boundColumn is what the formula allows a schedule by a floor.
func boundColumn(by, floor schedule, formula func(s *scenario, floor float64) float64) column {
	return column{"bound", func(rows []row, s *scenario) string {
		r, f := lookup(rows, s, by), lookup(rows, s, floor)
		if r == nil || f == nil {
			return ""
		}
		return fmt.Sprintf("%.3f", formula(s, f.Worst))
	}}
}

// pageTables are the page's tables, by name: which scenarios, and which columns.
var pageTables = map[string]struct {
	shows   func(*scenario) bool
	columns []column
}{
	"leaky": {isLimit, []column{
		worstColumn(perfect, "%.3f"), worstColumn(oneNode, "%.3f"), worstColumn(ours, "**%.3f**"),
		boundColumn(ours, oneNode, (*scenario).unitsBound), worstColumn(oursTick, "%.3f"),
		boundColumn(oursTick, oneNode, (*scenario).plainBound), worstColumn(hot, "%.3f"), worstColumn(timedReads, "%.3f"),
	}},
	"sliding": {isLimit, []column{
		worstColumn(perfect, "%.3f"), worstColumn(slidingNode, "%.3f"), worstColumn(sliding, "**%.3f**"),
		boundColumn(sliding, slidingNode, (*scenario).unitsBound), worstColumn(slidingTick, "%.3f"), worstColumn(slidingHot, "%.3f"),
		worstColumn(strict, "%.3f"), worstColumn(burst, "%.3f"),
	}},
	"mean": {isLimit, []column{
		meanColumn(perfect), meanColumn(ours), meanColumn(oursTick), meanColumn(sliding), meanColumn(slidingTick),
		meanColumn(strict), meanColumn(burst), meanColumn(timedReads),
	}},
	"false": {isLimit, []column{
		falseColumn(oneNode), falseColumn(ours), falseColumn(oursTick), falseColumn(sliding), falseColumn(strict),
		falseColumn(burst), falseColumn(timedReads),
		number(ours, "ours first", "%s", func(r *row) any { return strings.TrimSuffix(r.firstText(), " s") }),
		number(sliding, "sliding first", "%s", func(r *row) any { return strings.TrimSuffix(r.firstText(), " s") }),
	}},
	"manners": {func(s *scenario) bool { return s.polite != nil }, []column{
		number(ours, "ours", "%s %%", func(r *row) any { return r.againText() }),
		number(oursTick, "ours tick", "%s %%", func(r *row) any { return r.againText() }),
		number(sliding, "sliding", "%s %%", func(r *row) any { return r.againText() }),
		number(strict, "strict", "%s %%", func(r *row) any { return r.againText() }),
		number(burst, "burst", "%s %%", func(r *row) any { return r.againText() }),
	}},
	"costs": {func(s *scenario) bool { return isLimit(s) && s.by[0] == ours }, []column{
		costColumn(ours, "reads", func(r *row) any { return r.Reads }),
		costColumn(ours, "writes", func(r *row) any { return r.Writes }),
		costColumn(ours, "scripts", func(r *row) any { return r.Scripts }),
		costColumn(oursTick, "scripts", func(r *row) any { return r.Scripts }),
		costColumn(hot, "scripts", func(r *row) any { return r.Scripts }),
		costColumn(sliding, "scripts", func(r *row) any { return r.Scripts }),
		costColumn(timedReads, "scripts", func(r *row) any { return r.Scripts }),
	}},
	"many": {isCost, []column{
		costColumn(ours, "scripts", func(r *row) any { return r.Scripts }),
		number(ours, "most in a tick", "%d", func(r *row) any { return r.most }),
		costColumn(oursTick, "scripts", func(r *row) any { return r.Scripts }),
		costColumn(sliding, "scripts", func(r *row) any { return r.Scripts }),
		number(sliding, "most in a tick", "%d", func(r *row) any { return r.most }),
		costColumn(slidingTick, "scripts", func(r *row) any { return r.Scripts }),
	}},
}

// isCost reports whether the scenario is about scripts alone.
func isCost(s *scenario) bool { return s.name == hotEntity || len(s.keys) > 0 && s.polite == nil }

// isLimit reports whether the scenario is about what is admitted.
func isLimit(s *scenario) bool { return s.polite == nil && !isCost(s) }

// pageTable is one of the page's tables.
func pageTable(name string, rows []row, specs []*scenario) (string, error) {
	t, ok := pageTables[name]
	if !ok {
		return "", fmt.Errorf("accuracy: the page has no table %q", name)
	}
	var b strings.Builder
	b.WriteString("| scenario |")
	for _, c := range t.columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.columns)) + "\n")
	for _, s := range specs {
		if !t.shows(s) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, c := range t.columns {
			cell := c.cell(rows, s)
			if cell == "" {
				cell = "–"
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// lookup returns the row of a scenario and a schedule; nil if there is none.
func lookup(rows []row, spec *scenario, by schedule) *row {
	i := slices.IndexFunc(rows, func(r row) bool { return r.spec == spec && r.Schedule == by })
	if i < 0 {
		return nil
	}
	return &rows[i]
}

// marginText says where a schedule comes closest to its bound, or how often it exceeds
// it.
func marginText(rows []row, by schedule) string {
	floorOf := map[schedule]schedule{ours: oneNode, oursTick: oneNode, sliding: slidingNode}
	formula := (*scenario).unitsBound
	if by == oursTick {
		formula = (*scenario).plainBound
	}
	var closest *row
	margin := 0.0
	for i := range rows {
		r := &rows[i]
		floor := lookup(rows, r.spec, floorOf[by])
		if r.Schedule != by || floor == nil {
			continue
		}
		if m := formula(r.spec, floor.Worst) - r.Worst; closest == nil || m < margin {
			closest, margin = r, m
		}
	}
	if margin < 0 {
		return fmt.Sprintf("exceeds it by up to %.3f (%s)", -margin, closest.Scenario)
	}
	return fmt.Sprintf("stays below it everywhere, most narrowly by %.3f (%s)", margin, closest.Scenario)
}

// meanError is how far the formula of the mean is off, at most.
func meanError(rows []row) (most float64) {
	for i := range rows {
		r := &rows[i]
		if !r.spec.usual() || r.spec.factor < 1.5 {
			continue
		}
		switch r.Schedule {
		case ours, sliding:
			most = max(most, math.Abs(r.Mean-r.spec.mean(r.spec.delay())))
		case oursTick, slidingTick:
			most = max(most, math.Abs(r.Mean-r.spec.mean(r.spec.ticks())))
		}
	}
	return most
}

// missedText lists the targets that are missed.
func missedText(rows []row) string {
	lines, known := judge(rows)
	lines = append(lines, known...)
	if len(lines) == 0 {
		return "None is."
	}
	return "Missed:\n\n- " + strings.Join(lines, "\n- ")
}
