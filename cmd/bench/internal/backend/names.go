package backend

// This file names what a run counts.

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
)

// KeyNames returns the entity keys, 17 bytes each while they are below 10^10.
func KeyNames(keys int) []string {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("entity_%010d", i)
	}
	return names
}

// RandomName tells one run's keys from another's.
func RandomName() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
