package overrides

// This file reads the JSON object, strictly: what could mean two things is an
// error, because a wrong threshold is worse than an old one.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxBytes is the largest JSON text that [Parse] and the sources of this package
// accept: 4 MiB, some 150,000 overrides.
const MaxBytes = 4 << 20

// Parse reads one JSON object whose values are thresholds: decimal integers,
// 0 … 2^64 − 1, all digits of which count. Every error is [ErrMalformed]: another
// value (a fraction, an exponent, a string, null), a key that occurs twice, text
// after the object, text that is not UTF-8, or more than [MaxBytes] of it. The
// empty object gives an empty map; the empty text is an error.
//
// Keys are compared as decoded, so "a" and "\u0061" are one key. A key with the
// replacement character U+FFFD is an error, because a broken escape decodes to it.
func Parse(text []byte) (map[string]uint64, error) {
	if len(text) > MaxBytes {
		return nil, malformed("it is larger than %d bytes", MaxBytes)
	}
	if !utf8.Valid(text) {
		return nil, malformed("it is not UTF-8")
	}
	// The decoder of tokens lets some grammar errors pass.
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return nil, malformed("%v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	first, err := decoder.Token()
	if err != nil {
		return nil, malformed("%v", err)
	}
	if first != json.Delim('{') {
		return nil, malformed("it is not an object")
	}
	overrides := map[string]uint64{}
	for decoder.More() {
		if err := parseMember(decoder, overrides); err != nil {
			return nil, err
		}
	}
	return overrides, nil
}

// parseMember reads a key and its threshold.
func parseMember(decoder *json.Decoder, overrides map[string]uint64) error {
	token, err := decoder.Token()
	if err != nil {
		return malformed("%v", err)
	}
	key := token.(string) // the grammar was checked
	if token, err = decoder.Token(); err != nil {
		return malformed("%v", err)
	}
	number, ok := token.(json.Number)
	threshold, err := strconv.ParseUint(string(number), 10, 64)
	_, twice := overrides[key]
	switch {
	case strings.ContainsRune(key, utf8.RuneError):
		return malformed("the key %s holds U+FFFD or an escape of half a character", shown(key))
	case twice:
		return malformed("the key %s occurs twice", shown(key))
	case !ok:
		return malformed("the threshold of %s is no number, want an integer 0 … 18446744073709551615", shown(key))
	case err != nil:
		return malformed("the threshold of %s is %s, want an integer 0 … 18446744073709551615", shown(key), cut(string(number)))
	}
	overrides[key] = threshold
	return nil
}

// malformed returns an error that is ErrMalformed.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// shown is a key quoted for an error.
func shown(key string) string { return strconv.Quote(cut(key)) }

// cut is the text, or the beginning of a long one.
func cut(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
