// From tables to text: templates, and the functions they use.

package main

import (
	"bytes"
	"embed"
	"fmt"
	"go/format"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"comment":  comment,
	"cell":     cell,
	"duration": goDuration,
	"lower":    lowerFirst,
	"title":    upperFirst,
	"join":     strings.Join,
	"quote":    func(s string) string { return fmt.Sprintf("%q", s) },
	"unit":     unitName,
}).ParseFS(templateFiles, "templates/*.tmpl"))

// generate returns every generated file, in the order of their paths.
func generate(c config, m metricTable) ([]file, error) {
	if err := verifyConfig(c); err != nil {
		return nil, err
	}
	if err := verifyMetrics(m); err != nil {
		return nil, err
	}
	targets := []struct {
		path, template string
		data           any
	}{
		{"docs/configuration.md", "configuration.md.tmpl", c},
		{"docs/metrics.md", "metrics.md.tmpl", m},
		{"ratelimit/config_gen.go", "config.go.tmpl", c},
		{"ratelimit/metrics_gen.go", "metrics.go.tmpl", m},
	}
	files := make([]file, 0, len(targets))
	for _, t := range targets {
		content, err := render(t.template, t.data)
		if err != nil {
			return nil, fmt.Errorf("gen: %s: %w", t.path, err)
		}
		files = append(files, file{path: t.path, content: content})
	}
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
