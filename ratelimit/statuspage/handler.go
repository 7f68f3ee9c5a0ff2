package statuspage

// This file answers requests for the page.

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// An Option changes what [New] makes. Of several that set the same thing the last
// one counts.
type Option func(*page)

// WithTop says how many entities the page shows, those of the highest pressure and those
// that are refused most. The default is 20; 0 is none, and spares the walk through the table.
func WithTop(n int) Option {
	return func(p *page) { p.top = n }
}

// WithKeyText has the page show text(key) for the keys of the entities closest to
// their thresholds, to mask them for instance, and leaves out the overrides. nil is
// the default: the key itself, quoted if it is not all printable.
func WithKeyText(text func(key string) string) Option {
	return func(p *page) { p.keyText = text }
}

// New returns a handler that shows lim. It stays valid after lim is closed.
func New(lim *ratelimit.Limiter, opts ...Option) http.Handler {
	p := &page{lim: lim, top: 20, now: time.Now, born: time.Now(), turn: make(chan struct{}, 1)}
	for _, opt := range opts {
		opt(p)
	}
	return p
}

// A page is immutable, but for whose turn it is.
type page struct {
	lim     *ratelimit.Limiter
	top     int
	keyText func(string) string
	now     func() time.Time
	born    time.Time
	turn    chan struct{} // holds one while a request looks at the limiter
}

// ServeHTTP answers GET and HEAD.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered", http.StatusMethodNotAllowed)
		return
	}
	render := html
	switch format := r.URL.Query().Get("format"); {
	case format == "json", format == "" && prefersJSON(r.Header.Values("Accept")):
		render = asJSON
	case format != "" && format != "html":
		http.Error(w, "format is json or html", http.StatusBadRequest)
		return
	}
	select {
	case p.turn <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	d := p.complete(p.inTurn(r))
	body, contentType, err := render(d)
	if err != nil {
		http.Error(w, "the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	_, _ = w.Write(body) // a client that is gone needs no answer
}

// inTurn looks at the limiter while it is this request's turn.
func (p *page) inTurn(r *http.Request) *view {
	defer func() { <-p.turn }()
	if query := r.URL.Query(); query.Has("key") {
		key := query.Get("key")
		return p.look(&key)
	}
	return p.look(nil)
}

func asJSON(d *document) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	err = e.Encode(d)
	return b.Bytes(), "application/json", err
}
