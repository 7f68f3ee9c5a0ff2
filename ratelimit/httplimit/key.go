package httplimit

// This file makes keys of what a request says about its sender.

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// ErrAmbiguous is the failure of a key that a request names more than once.
var ErrAmbiguous = errors.New("httplimit: more than one value")

// Header returns a key function that answers the value of a request field, without
// space around it: empty if the request has no such field, and an error that wraps
// [ErrAmbiguous] if it has several. For "Host" it answers the request's host.
//
// What clients can make up, they can vary to escape the limit: use a field that
// was verified before, or that a proxy of yours sets.
func Header(name string) KeyFunc {
	name = http.CanonicalHeaderKey(name)
	return func(r *http.Request) (string, error) {
		if name == "Host" {
			return r.Host, nil
		}
		switch values := r.Header[name]; len(values) {
		case 0:
			return "", nil
		case 1:
			return strings.TrimSpace(values[0]), nil
		default:
			return "", fmt.Errorf("%w of the field %s", ErrAmbiguous, name)
		}
	}
}

// Prefixed returns a key function that puts prefix before the keys of key, so that
// one limiter can count users and addresses, say, without mixing them up. An empty
// key stays empty.
func Prefixed(prefix string, key KeyFunc) KeyFunc {
	return func(r *http.Request) (string, error) {
		k, err := key(r)
		if err != nil || k == "" {
			return "", err
		}
		return prefix + k, nil
	}
}
