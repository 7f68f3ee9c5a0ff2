package httplimit

// This file makes keys of what a request says about its sender.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
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
			noteMissing(r, name)
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
// key stays empty. Overrides are by the whole key, the prefix included.
func Prefixed(prefix string, key KeyFunc) KeyFunc {
	return func(r *http.Request) (string, error) {
		k, err := key(r)
		if err != nil || k == "" {
			return "", err
		}
		return prefix + k, nil
	}
}

// A MissingError is the reason for which a request is refused whose key is empty because
// it lacks fields that [Header] looked for. It is an [ErrEmptyKey].
type MissingError struct {
	Fields []string // their canonical names
}

func (e *MissingError) Error() string {
	return ErrEmptyKey.Error() + ": " + e.detail()
}

// Is reports whether target is [ErrEmptyKey].
func (e *MissingError) Is(target error) bool { return target == ErrEmptyKey }

// detail says what is missing, to the client too: the names of fields, no values.
func (e *MissingError) detail() string {
	if len(e.Fields) == 1 {
		return "the field " + e.Fields[0] + " is missing"
	}
	return "the fields " + strings.Join(e.Fields, ", ") + " are missing"
}

// missingKey is the key of a *[]string in a context: the fields that were not there.
type missingKey struct{}

func noteMissing(r *http.Request, name string) {
	if missing, ok := r.Context().Value(missingKey{}).(*[]string); ok && !slices.Contains(*missing, name) {
		*missing = append(*missing, name)
	}
}

// emptyKey returns why a request's key is empty. It asks the key function again: only
// requests that are refused pay for that.
func emptyKey(key KeyFunc, r *http.Request) error {
	var missing []string
	if k, err := key(r.WithContext(context.WithValue(r.Context(), missingKey{}, &missing))); err != nil || k != "" || len(missing) == 0 {
		return ErrEmptyKey
	}
	return &MissingError{missing}
}
