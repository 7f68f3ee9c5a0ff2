// From tables to text: templates, and the functions they use.

package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"anchor":   strings.ToLower,
	"comment":  comment,
	"cell":     cell,
	"duration": goDuration,
	"lower":    lowerFirst,
	"title":    upperFirst,
	"join":     strings.Join,
	"quote":    func(s string) string { return fmt.Sprintf("%q", s) },
	"unit":     unitName,
}).ParseFS(templateFiles, "templates/*.tmpl"))

// tables are all that files are generated from.
type tables struct {
	Config    config
	Metrics   metricTable
	Dashboard dashboard
	Alerts    alerts
}

// generate returns every generated file, in the order of their paths.
func generate(t tables) ([]file, error) {
	if err := verifyConfig(t.Config); err != nil {
		return nil, err
	}
	if err := verifyMetrics(t.Metrics); err != nil {
		return nil, err
	}
	rules, err := t.Alerts.prometheus(t.Metrics)
	if err != nil {
		return nil, err
	}
	graphs, err := t.Dashboard.grafana(t.Metrics)
	if err != nil {
		return nil, err
	}
	targets := []struct {
		path, template string
		data           any
	}{
		{"docs/configuration.md", "configuration.md.tmpl", t.Config},
		{"docs/metrics.md", "metrics.md.tmpl", t.Metrics},
		{"internal/exposition/families_gen.go", "families.go.tmpl", t.Metrics},
		{"ratelimit/config_fields_gen.go", "config_fields.go.tmpl", t.Config},
		{"ratelimit/config_gen.go", "config.go.tmpl", t.Config},
		{"ratelimit/metrics_gen.go", "metrics.go.tmpl", t.Metrics},
	}
	files := []file{{"docs/alerts/limiters.yaml", rules}, {"docs/dashboards/limiters.json", graphs}}
	for _, target := range targets {
		content, err := render(target.template, target.data)
		if err != nil {
			return nil, fmt.Errorf("gen: %s: %w", target.path, err)
		}
		files = append(files, file{path: target.path, content: content})
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return files, nil
}

// render executes a template; Go source comes back formatted.
func render(name string, data any) ([]byte, error) {
	var buf bytes.Buffer
	if err := templates.ExecuteTemplate(&buf, name, data); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(name, ".go.tmpl") {
		return buf.Bytes(), nil
	}
	return format.Source(buf.Bytes())
}

// comment wraps text into a Go comment of at most 78 columns, tabs counted as
// four.
func comment(indent int, text string) string {
	const columns = 78
	prefix := strings.Repeat("\t", indent) + "//"
	var b strings.Builder
	width := columns // no line begun
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		if width+1+n > columns {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(prefix)
			width = 4*indent + 2
		}
		b.WriteString(" " + word)
		width += 1 + n
	}
	return b.String()
}

// cell escapes what would end a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(text, "|", `\|`)
}

// goDuration is n nanoseconds as a Go expression.
func goDuration(n int64) string {
	for _, unit := range []struct {
		d    time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}} {
		if n%int64(unit.d) == 0 {
			if n == int64(unit.d) {
				return unit.name
			}
			return fmt.Sprintf("%d * %s", n/int64(unit.d), unit.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", n)
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}

func upperFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}
