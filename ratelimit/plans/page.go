package plans

// This file shows plans in force to people as HTML, and to programs as JSON.

import (
	"encoding/json"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hanzoai/limiters/ratelimit/statuspage"
)

// A page is what the page says. Its JSON names are stable within a major version.
type page struct {
	File    string      `json:"file"`
	Problem string      `json:"problem"` // why the file was refused the last time; "" if it was not
	Changes []string    `json:"changes"` // by the last reload that changed something
	Limits  []pageLimit `json:"limits"`
	Routes  []pageRoute `json:"routes"`
	Plans   []pagePlan  `json:"plans"`
	Keys    int         `json:"keys"`
	Allow   int         `json:"allow"`
	Block   int         `json:"block"`
}

type pageLimit struct {
	Name      string `json:"name"`
	Threshold uint64 `json:"threshold"`
	Window    string `json:"window"`
	Kind      string `json:"kind"`
	Fleet     bool   `json:"fleet"`
	DryRun    bool   `json:"dry_run"`
	Allowed   uint64 `json:"allowed"` // decisions
	Limited   uint64 `json:"limited"`
}

type pageRoute struct {
	Pattern string   `json:"pattern"`
	Key     string   `json:"key"`
	Limits  []string `json:"limits"`
	DryRun  bool     `json:"dry_run"`
}

type pagePlan struct {
	Name       string            `json:"name"`
	Default    bool              `json:"default"`
	Thresholds map[string]uint64 `json:"thresholds"`
}

// Page returns a handler that shows the file in force, why a newer one was refused, and what the last
// reload changed; with the query limit=NAME that limit's page of package statuspage, made with opts.
// It gives JSON if the query says format=json. The page itself shows no keys; the limits' pages do.
func (p *Plans) Page(opts ...statuspage.Option) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.URL.Query().Get("limit"); name != "" {
			lim := p.Limiter(name)
			if lim == nil {
				http.Error(w, "the limits are "+strings.Join(p.Limits(), ", "), http.StatusNotFound)
				return
			}
			statuspage.New(lim, opts...).ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
			return
		}
		var text strings.Builder
		var err error
		if r.URL.Query().Get("format") == "json" {
			h.Set("Content-Type", "application/json")
			e := json.NewEncoder(&text)
			e.SetIndent("", "  ")
			err = e.Encode(p.look())
		} else {
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
			err = pageTemplate.Execute(&text, p.look())
		}
		if err != nil {
			http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(text.String())) // a client that is gone needs no answer
	})
}

// look gathers what the page says. A reload under way is waited for.
func (p *Plans) look() page {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.current.Load()
	f := r.file
	d := page{File: p.path, Problem: p.problem, Changes: p.changes, Keys: len(f.Keys), Allow: len(f.Allow), Block: len(f.Block)}
	for _, name := range slices.Sorted(maps.Keys(f.Limits)) {
		l, lim := f.Limits[name], r.limits[name].limiter
		s := lim.Stats()
		d.Limits = append(d.Limits, pageLimit{
			Name: name, Threshold: l.Threshold, Window: l.window(), Kind: string(lim.Config().Window), Fleet: l.Ask == "fleet",
			DryRun: l.DryRun, Allowed: s.Allowed, Limited: s.Limited,
		})
	}
	for _, written := range f.Routes {
		d.Routes = append(d.Routes, pageRoute{written.Pattern, written.Key, written.Limits, written.DryRun})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Plans)) {
		d.Plans = append(d.Plans, pagePlan{name, name == f.DefaultPlan, f.Plans[name]})
	}
	return d
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"join": strings.Join}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Plans</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .8em .25em 0;border-bottom:1px solid #8884}.bad{color:#b00020;white-space:pre-wrap}</style>
</head>
<body>
<h1>Plans</h1>
<p>{{.File}}: {{.Keys}} keys with plans, {{.Allow}} allowed, {{.Block}} blocked.</p>
{{- if .Problem}}
<p class="bad">The file was refused; what was in force before stays. {{.Problem}}</p>
{{- end}}
<h2>Changed last</h2>
<ul>{{range .Changes}}<li>{{.}}</li>{{end}}</ul>
<h2>Limits</h2>
<table><tr><th>Limit</th><th>Threshold</th><th>Window</th><th>Decided by</th><th>Allowed</th><th>Limited</th></tr>
{{- range .Limits}}
<tr><td><a href="?limit={{.Name}}">{{.Name}}</a>{{if .DryRun}} (dry run){{end}}</td><td>{{.Threshold}}</td><td>{{.Window}} {{.Kind}}</td><td>{{if .Fleet}}the fleet{{else}}this node{{end}}</td><td>{{.Allowed}}</td><td>{{.Limited}}</td></tr>
{{- end}}
</table>
<h2>Routes</h2>
<table><tr><th>Pattern</th><th>Key</th><th>Limits</th></tr>
{{- range .Routes}}
<tr><td>{{.Pattern}}{{if .DryRun}} (dry run){{end}}</td><td>{{.Key}}</td><td>{{join .Limits ", "}}</td></tr>
{{- end}}
</table>
<h2>Plans</h2>
<table><tr><th>Plan</th><th>Thresholds</th></tr>
{{- range .Plans}}
<tr><td>{{.Name}}{{if .Default}} (default){{end}}</td><td>{{range $limit, $threshold := .Thresholds}}{{$limit}} {{$threshold}} {{end}}</td></tr>
{{- end}}
</table>
</body>
</html>
`))
