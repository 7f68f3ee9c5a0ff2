package onekey

// This file writes docs/one-key.md: page.md with the tables in it.

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/hanzoai/limiters/ratelimit"
)

//go:embed page.md
var pageText string // immutable

// writePage writes the page.
func writePage(w io.Writer, lives []life) error {
	page, err := template.New("page").Funcs(template.FuncMap{
		"table": func(kind string) (string, error) {
			l, err := of(lives, kind)
			return l.table(), err
		},
		"passed": func(kind string) (int, error) {
			l, err := of(lives, kind)
			return l.passed, err
		},
		"asked": func(kind string) (int, error) {
			l, err := of(lives, kind)
			return l.asked, err
		},
		"most": func(kind string) (int, error) {
			l, err := of(lives, kind)
			most := 0
			for _, m := range l.curve {
				most = max(most, m.inWindow)
			}
			return most, err
		},
		"threshold": func() int { return threshold },
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return page.Execute(w, nil)
}

// of returns the life under a kind.
func of(lives []life, kind string) (life, error) {
	for _, l := range lives {
		if l.kind == ratelimit.WindowKind(kind) {
			return l, nil
		}
	}
	return life{}, fmt.Errorf("onekey: the minute was not lived under %q", kind)
}

// table is the minute, second by second.
func (l *life) table() string {
	var b strings.Builder
	b.WriteString("| second | A asked, passed | B asked, passed | A's level | B's level | Redis: before + now | unsent A, B | in the last window | why |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for i := range l.seconds {
		s := &l.seconds[i]
		fmt.Fprintf(&b, "| %d |", s.at)
		for _, n := range s.nodes {
			if n.asked == 0 {
				b.WriteString(" – |")
			} else {
				fmt.Fprintf(&b, " %d, %d |", n.asked, n.passed)
			}
		}
		for _, n := range s.nodes {
			if !n.known {
				b.WriteString(" ? |")
			} else {
				fmt.Fprintf(&b, " %s |", number(n.level))
			}
		}
		fmt.Fprintf(&b, " %d + %d | %d, %d | %d | %s |\n", s.before, s.now, s.nodes[0].unsent, s.nodes[1].unsent, s.inWindow, s.why())
	}
	return b.String()
}
