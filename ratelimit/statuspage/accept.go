package statuspage

// This file reads what a client accepts (RFC 9110, Accept), as far as it tells JSON
// from HTML.

import (
	"mime"
	"strconv"
	"strings"
)

// prefersJSON reports whether a client gives JSON a higher quality than HTML. A
// range that is malformed says nothing.
func prefersJSON(accept []string) bool {
	json, html := preference{}, preference{}
	for _, line := range accept {
		for element := range strings.SplitSeq(line, ",") {
			kind, parameters, err := mime.ParseMediaType(element)
			if err != nil {
				continue
			}
			quality := 1.0
			if q, ok := parameters["q"]; ok {
				if quality, err = strconv.ParseFloat(q, 64); err != nil || !(0 <= quality && quality <= 1) {
					continue
				}
			}
			json.consider(kind, "application/json", quality)
			html.consider(kind, "text/html", quality)
		}
	}
	return json.quality > html.quality
}

// A preference is the quality of one media type, and by how exact a range.
type preference struct {
	exactness int // 1 for */*, 2 for type/*, 3 for the type itself
	quality   float64
}

// consider takes a range into account: the most exact one counts, of equals the
// first.
func (p *preference) consider(kind, target string, quality float64) {
	family, _, _ := strings.Cut(target, "/")
	exactness := 0
	switch kind {
	case "*/*":
		exactness = 1
	case family + "/*":
		exactness = 2
	case target:
		exactness = 3
	}
	if exactness > p.exactness {
		p.exactness, p.quality = exactness, quality
	}
}
