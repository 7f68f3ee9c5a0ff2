// Package lua embeds the script that applies a batch to Redis.
package lua

import (
	"crypto/sha1" // #nosec G505 -- the name Redis gives a script, not a secret
	_ "embed"
	"encoding/hex"
)

// Source is sync.lua. What it does is told in its head and in ratelimit/store.
//
//go:embed sync.lua
var Source string

// SHA1 is the name under which Redis caches Source: lower case, as EVALSHA on
// every server accepts it.
var SHA1 = digest(Source)

// digest returns the SHA-1 of a script in hexadecimal.
func digest(source string) string {
	sum := sha1.Sum([]byte(source)) // #nosec G401 -- see above
	return hex.EncodeToString(sum[:])
}
