package httplimit

// This file limits the requests that a client makes.

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hanzoai/limiters/ratelimit"
)

// A Transport is an http.RoundTripper that waits, before each request, until the limiter
// lets it pass: for a client of somebody else's API that a whole fleet calls at one agreed
// rate. Requests of one key wait in line, by [ratelimit.Limiter.Wait].
//
//	client := &http.Client{Transport: &httplimit.Transport{Limiter: lim}}
//
// A request whose context ends while it waits, or whose deadline is before it would pass,
// is not sent: its error wraps the context's, [context.DeadlineExceeded] or
// [ratelimit.ErrNever]. http.Client.Timeout counts the wait too. A request that was let pass
// and then failed stays counted: whether the API counted it nobody knows. Redirects and
// retries are requests of their own. What the API answers is not looked at.
//
// The fields must not be changed once the Transport is in use. It is safe for concurrent
// use. Without a Limiter every request fails.
type Transport struct {
	// Limiter counts the requests; required.
	Limiter *ratelimit.Limiter
	// Key says under which key a request is counted; nil counts by the host that is called,
	// in lower case, with its port if it has one. An error or an empty key fails the request.
	Key KeyFunc
	// Cost is how many units a request costs; nil is one for each.
	Cost func(r *http.Request) uint64
	// Base sends the requests; nil is http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip waits and then sends the request.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.wait(r); err != nil {
		if r.Body != nil {
			r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	return t.base().RoundTrip(r)
}

// wait returns when the request may be sent.
func (t *Transport) wait(r *http.Request) error {
	if t.Limiter == nil {
		return errors.New("httplimit: the Transport has no Limiter")
	}
	key, err := t.key(r)
	if err != nil {
		return fmt.Errorf("httplimit: the key of a request to send: %w", err)
	}
	if key == "" {
		return ErrEmptyKey
	}
	units := uint64(1)
	if t.Cost != nil {
		units = t.Cost(r)
	}
	return t.Limiter.Wait(r.Context(), key, units)
}

func (t *Transport) key(r *http.Request) (string, error) {
	if t.Key != nil {
		return t.Key(r)
	}
	if r.URL == nil {
		return "", nil
	}
	return strings.ToLower(r.URL.Host), nil
}

// CloseIdleConnections closes those of Base, if it can: http.Client's method of that name
// calls it.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}
