package plans

// This file reads a file of plans and says all that is wrong with it.

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

// Parse reads the text of a file of plans, whose path is for errors, and checks all that
// can be checked without the program: the key functions that it names are taken to be there. The
// error is [Problems], with file, line and field of each.
func Parse(path string, text []byte) (*File, error) {
	return parse(path, text, nil, ratelimit.DefaultConfig())
}

// parse is Parse for limits over a base; known reports whether there is a key function of a
// name, nil if any may be.
func parse(path string, text []byte, known func(name string) bool, base ratelimit.Config) (*File, error) {
	d := &decoder{file: path, lines: map[string]int{}}
	f := d.decode(text)
	if len(d.problems) > 0 {
		return nil, d.problems.err() // what follows from them would say the same again
	}
	v := &validator{decoder: d, f: f, known: known, base: base}
	if len(f.Limits) == 0 {
		v.fault("limits", "it is empty: want one limit at least")
		return nil, d.problems.err()
	}
	v.limits()
	v.plans()
	v.routes()
	v.entries("allow", f.Allow)
	v.entries("block", f.Block)
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// load reads a file's text.
func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("plans: %w", err)
	}
	if !info.Mode().IsRegular() { // a pipe would block
		return nil, Problems{{File: path, Text: "it is no regular file"}}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("plans: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("plans: %w", err)
	}
	return text, nil
}

// A validator checks what is not a matter of one value.
type validator struct {
	*decoder
	f     *File
	known func(name string) bool
	base  ratelimit.Config
}

// fault adds a problem of a field.
func (v *validator) fault(field, format string, args ...any) {
	line := v.lines[field]
	for at := field; line == 0 && at != ""; line = v.lines[at] { // of what the field is missing in
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
		if at == "" {
			break
		}
	}
	v.add(line, field, format, args...)
}

// named are names of limits: they become part of Redis keys and metrics.
var named = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (v *validator) limits() {
	for name, l := range v.f.Limits {
		field := "limits." + name
		if !named.MatchString(name) {
			v.fault(field, "the name %s: want 1 to 64 letters, digits, _ or -", shown(name))
		}
		v.keyFunction(field+".key", l.Key)
		if strings.IndexFunc(l.Unit, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
			v.fault(field+".unit", "%s: want printable ASCII", shown(l.Unit))
		}
		switch {
		case l.Calendar != "" && l.Window != 0:
			v.fault(field+".window", "a calendar has windows of its own: want no window, or no calendar")
		case l.Calendar != "" && l.Kind != "" && l.Kind != "fixed":
			v.fault(field+".kind", "%s: want fixed, as there is a calendar", shown(l.Kind))
		case l.Calendar == "" && l.Zone != "":
			v.fault(field+".zone", "there is no calendar that it could be of")
		default:
			v.config(name, l)
		}
	}
}

func (v *validator) plans() {
	for plan, thresholds := range v.f.Plans {
		for limit := range thresholds {
			if _, ok := v.f.Limits[limit]; !ok {
				v.fault("plans."+plan+"."+limit, "there is no such limit: want %s", among(v.f.Limits))
			}
		}
	}
	v.plan("default_plan", v.f.DefaultPlan, v.f.DefaultPlan == "")
	for key, plan := range v.f.Keys {
		v.plan("keys."+key, plan, false)
		if key == "" {
			v.fault("keys."+key, "the key is empty")
		}
	}
}

func (v *validator) plan(field, plan string, none bool) {
	if _, ok := v.f.Plans[plan]; !ok && !none {
		v.fault(field, "there is no plan %s: want %s", shown(plan), among(v.f.Plans))
	}
}

func (v *validator) routes() {
	mux := http.NewServeMux()
	counted := map[string]string{} // the key function of each limit
	where := map[string]string{}
	for i, r := range v.f.Routes {
		field := fmt.Sprintf("routes[%d]", i)
		if err := register(mux, r.Pattern, http.NotFoundHandler()); err != nil {
			v.fault(field+".pattern", "%v", err)
		}
		v.keyFunction(field+".key", r.Key)
		seen := map[string]bool{}
		for j, name := range r.Limits {
			at := fmt.Sprintf("%s.limits[%d]", field, j)
			l, ok := v.f.Limits[name]
			key := l.Key
			if key == "" {
				key = r.Key
			}
			switch {
			case !ok:
				v.fault(at, "there is no limit %s: want %s", shown(name), among(v.f.Limits))
			case seen[name]:
				v.fault(at, "the limit %s is named twice", shown(name))
			case key == "":
				v.fault(field+".key", "it is missing: the limit %s has none of its own", shown(name))
			case counted[name] != "" && counted[name] != key:
				v.fault(at, "the limit %s is counted by %s here and by %s in line %d, where equal keys would meet: give it a key of its own, or make two limits of it",
					shown(name), shown(key), shown(counted[name]), v.lines[where[name]])
			default:
				counted[name], where[name] = key, at
			}
			seen[name] = true
		}
	}
}

func (v *validator) entries(list string, entries []Entry) {
	for i, e := range entries {
		field := fmt.Sprintf("%s[%d]", list, i)
		if e.Key == "" {
			v.fault(field+".key", "it is empty: want a key")
		}
		v.keyFunction(field+".by", e.By)
	}
}

// keyFunction checks the name of a key function; none is right, too.
func (v *validator) keyFunction(field, name string) {
	if name == "" {
		return
	}
	if header, ok := strings.CutPrefix(name, "header:"); ok {
		if !token(header) {
			v.fault(field, "%s: want the name of a header field after header:", shown(name))
		}
		return
	}
	if v.known != nil && !v.known(name) {
		v.fault(field, "there is no key function %s: want header:NAME, ip, everybody, or one that the program names", shown(name))
	}
}

// token reports whether s may be the name of a header field.
func token(s string) bool {
	return s != "" && strings.IndexFunc(s, func(c rune) bool {
		return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	}) < 0
}

// among is the names of a mapping, for an error.
func among[T any](of map[string]T) string {
	if len(of) == 0 {
		return "one, of which there are none"
	}
	names := slices.Sorted(maps.Keys(of))
	if len(names) > 10 {
		names = append(names[:10], "…")
	}
	return strings.Join(names, ", ")
}

var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)|http: `)

// register is mux.Handle, which panics over a pattern that is wrong or overlaps another.
func register(mux *http.ServeMux, pattern string, handler http.Handler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New(strings.Join(strings.Fields(registeredAt.ReplaceAllString(fmt.Sprint(p), "")), " "))
		}
	}()
	mux.Handle(pattern, handler)
	return nil
}

// builtIn are the key functions that every program has, but for header:NAME.
func builtIn() map[string]httplimit.KeyFunc {
	ip, err := httplimit.ClientIP(httplimit.Proxies{})
	if err != nil {
		panic(err) // no proxies are right
	}
	return map[string]httplimit.KeyFunc{
		"ip":        ip,
		"everybody": func(*http.Request) (string, error) { return "everybody", nil },
	}
}
