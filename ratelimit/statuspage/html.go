package statuspage

// This file renders the page for people.

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"math"
	"strconv"
	"time"
)

//go:embed page.html
var pageText string

//go:embed page.css
var style string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(style) },
	"count":  func(n uint64) string { return grouped(strconv.FormatUint(n, 10)) },
	"number": func(n int) string { return grouped(strconv.Itoa(n)) },
	"level":  func(f float64) string { return grouped(strconv.FormatFloat(f, 'f', 0, 64)) },
	"percent": func(f float64) string {
		return strconv.FormatFloat(100*f, 'f', 1, 64) + " %"
	},
	"uptime":  func(s float64) string { return span(s) },
	"since":   func(now, then time.Time) string { return span(now.Sub(then).Seconds()) },
	"age":     func(now time.Time, then *time.Time) string { return span(now.Sub(*then).Seconds()) },
	"seconds": func(s *float64) string { return span(*s) },
	"window":  func(s float64) string { return strconv.FormatFloat(s, 'f', -1, 64) + " s" },
	"skew":    func(ms float64) string { return strconv.FormatFloat(math.Round(ms)+0, 'f', 0, 64) + " ms" },
}).Parse(pageText))

// policy lets the page have its own style and nothing else.
var policy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

func html(d *document) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	err = pageTemplate.Execute(&b, d)
	return b.Bytes(), "text/html; charset=utf-8", err
}

// grouped puts a narrow space between each three digits of a whole number.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

// span is a number of seconds for people. What clocks that differ make negative is
// no time at all.
func span(seconds float64) string {
	switch d := time.Duration(max(0, seconds) * float64(time.Second)); {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
