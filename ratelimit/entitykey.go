package ratelimit

// This file gives every entity key a bounded representation: what the table is
// keyed by and what stands in Redis keys.

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// digestMarker begins the representation of a key too long to be kept whole. A key
// that begins with it is represented by its digest too, so that no two keys share
// a representation.
const digestMarker = "sha256#"

// representation returns what stands for the key: the key itself, or the marker
// and the SHA-256 of a key that is longer than maxBytes or begins with the marker.
func representation(key string, maxBytes int) string {
	if standsForItself(key, maxBytes) {
		return key
	}
	return digest(key)
}

// standsForItself reports whether the key is its own representation.
func standsForItself(key string, maxBytes int) bool {
	return len(key) <= maxBytes && !strings.HasPrefix(key, digestMarker)
}

// digest returns the marker and the key's SHA-256.
func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return digestMarker + hex.EncodeToString(sum[:])
}

// appendCounterKey appends {prefix}:{entity}:{epoch}. The epoch is what follows the
// last colon, so that no two pairs of entity and epoch share a counter.
func appendCounterKey(b []byte, prefix, entity string, epoch int64) []byte {
	b = append(b, prefix...)
	b = append(b, ':')
	b = append(b, entity...)
	b = append(b, ':')
	return strconv.AppendInt(b, epoch, 10)
}

// The keys beside the counters. Neither ends in a colon and digits, so that no
// entity can produce them.
func sequenceKey(prefix, identity string) string { return prefix + ":" + identity + ":seq" }
func windowKey(prefix string) string             { return prefix + ":window" }
