package ratelimit

// This file hides entity keys that are secrets behind a keyed digest.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// hashMarker begins the representation of a key that a secret hides.
const hashMarker = "hmac#"

// MinKeyHashSecret is how long a secret of [WithKeyHash] is at least, in bytes.
const MinKeyHashSecret = 16

// WithKeyHash has an HMAC-SHA256 of each entity key stand for it wherever keys are kept
// or shown: in the local table, in Redis, in [Limiter.TopByPressure] and
// [Limiter.MostRefused], on the status page and in the log. It is for keys that are
// secrets themselves, such as API keys. Overrides and the resolver see the original.
//
// Every limiter that shares counters needs the same secret: another one is another set
// of counters, and so is none. A secret of fewer than [MinKeyHashSecret] bytes, nil too,
// is an error of [New]. The digest is cut to 128 bits; computing it takes some hundred
// nanoseconds and allocates, at each check. The limiter copies the secret.
func WithKeyHash(secret []byte) Option {
	secret = slices.Clone(secret)
	return func(o *options) { o.keySecret, o.hashKeys = secret, true }
}

// keyHash returns the limiter's secret, nil if keys stand for themselves.
func (o *options) keyHash() ([]byte, error) {
	if o.hashKeys && len(o.keySecret) < MinKeyHashSecret {
		return nil, fmt.Errorf("ratelimit: WithKeyHash: the secret has %d bytes, want %d or more", len(o.keySecret), MinKeyHashSecret)
	}
	return o.keySecret, nil
}

// KeyName returns what stands for the entity key in Redis and where keys are shown: the
// key itself, a digest of one that is longer than Config.MaxKeyBytes, or with
// [WithKeyHash] a keyed digest of any.
func (l *Limiter) KeyName(key string) string {
	if standsForItself(key, l.maxKeyBytes) {
		return key
	}
	return l.digest(key)
}

// digest returns what stands for a key that does not stand for itself.
func (l *Limiter) digest(key string) string {
	if l.keySecret == nil {
		return digest(key)
	}
	mac := hmac.New(sha256.New, l.keySecret)
	_, _ = mac.Write([]byte(key))
	return hashMarker + hex.EncodeToString(mac.Sum(nil)[:16])
}
