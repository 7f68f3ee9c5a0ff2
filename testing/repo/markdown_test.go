package repo

// This file reads Markdown as far as the documents' tests need it.

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A document is a Markdown file taken apart.
type document struct {
	path  string // from the root
	lines int
	prose string // all but the code blocks and inline code
	code  []block
}

// A block is a fenced code block.
type block struct {
	language string
	line     int // of its first line of text
	text     string
}

// documents returns README.md and those of docs/.
func documents(t *testing.T) []document {
	t.Helper()
	var found []document
	for _, path := range files(t, "*.md") {
		if !strings.Contains(path, "/") || strings.HasPrefix(path, "docs/") {
			found = append(found, readDocument(path, contents(t, path)))
		}
	}
	return found
}

var inlineCode = regexp.MustCompile("`[^`\n]*`")

func readDocument(path, text string) document {
	d := document{path: path}
	var prose strings.Builder
	var open *block
	for line := range strings.Lines(text) {
		d.lines++
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open != nil:
			d.code = append(d.code, *open)
			open = nil
		case isFence:
			open = &block{language: fence, line: d.lines + 1}
		case open != nil:
			open.text += line
		default:
			prose.WriteString(line)
		}
	}
	d.prose = prose.String()
	return d
}

var (
	inlineLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	referenceLink = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)`)
	htmlLink      = regexp.MustCompile(`(?:src|srcset|href)="([^"]+)"`)
)

// links returns where the document's links and images point.
func (d document) links() []string {
	prose := inlineCode.ReplaceAllString(d.prose, "``")
	var targets []string
	for _, pattern := range []*regexp.Regexp{inlineLink, referenceLink, htmlLink} {
		for _, match := range pattern.FindAllStringSubmatch(prose, -1) {
			targets = append(targets, match[1])
		}
	}
	return targets
}

var (
	heading     = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)
	htmlAnchor  = regexp.MustCompile(`(?:id|name)="([^"]+)"`)
)

// hasAnchor says whether a link may point to the fragment, by the rule of GitHub.
func (d document) hasAnchor(fragment string) bool {
	var anchors []string
	for _, match := range heading.FindAllStringSubmatch(d.prose, -1) {
		anchors = append(anchors, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	for _, match := range htmlAnchor.FindAllStringSubmatch(d.prose, -1) {
		anchors = append(anchors, match[1])
	}
	return slices.Contains(anchors, fragment)
}

func TestReadDocument(t *testing.T) {
	t.Parallel()
	d := readDocument("x.md", "# One: `Two` three!\n\n[a](docs/a.md#b) ![i](i.svg \"title\") `[no](no.md)`\n"+
		"```go\n[no](no.md)\n\tx()\n```\n<a href=\"h.md\" id=\"here\">\n[r]: <r.md>\n")
	if want := []string{"docs/a.md#b", "i.svg", "r.md", "h.md"}; !slices.Equal(d.links(), want) {
		t.Errorf("links = %q, want %q", d.links(), want)
	}
	if len(d.code) != 1 || d.code[0] != (block{"go", 5, "[no](no.md)\n\tx()\n"}) {
		t.Errorf("code = %+v", d.code)
	}
	if d.lines != 9 || !d.hasAnchor("one-two-three") || !d.hasAnchor("here") || d.hasAnchor("three") {
		t.Errorf("%d lines, anchors of %q wrong", d.lines, d.prose)
	}
}
