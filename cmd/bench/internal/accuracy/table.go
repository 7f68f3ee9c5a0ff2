package accuracy

// This file prints the rows for people.

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeTable writes one line for each scenario and schedule.
func writeTable(w io.Writer, rows []row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "scenario\tschedule\tworst\tmean\tfalse limits\tfirst limit\treads\twrites\tscripts\tagain")
	for i := range rows {
		r := &rows[i]
		name := r.Scenario
		if i > 0 && rows[i-1].Scenario == name {
			name = ""
		}
		fmt.Fprintf(table, "%s\t%s\t%.3f\t%.3f\t%d\t%s\t%.2f\t%.2f\t%.2f\t%s\n", name, r.Schedule,
			r.Worst, r.Mean, r.FalseLimits, r.firstText(), r.Reads, r.Writes, r.Scripts, r.againText())
	}
	fmt.Fprint(table, "\nworst, mean: a window's admitted units / threshold; reads, writes, scripts: per node and second\n"+
		"again: refused again after the wait that was told, in %\n")
	return table.Flush()
}

// firstText is when the first request was limited, in seconds.
func (r *row) firstText() string {
	if r.FirstLimit == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f s", *r.FirstLimit)
}

// againText is how many clients were refused again, in %.
func (r *row) againText() string {
	if r.RefusedAgain == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *r.RefusedAgain)
}
