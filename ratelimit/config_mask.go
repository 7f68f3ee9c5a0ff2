// Keeping passwords out of errors, settings and logs. A URL is masked without
// being parsed, so that a malformed one gives nothing away either.

package ratelimit

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	asterisks = "***"

	// shownBytes is how much of a value an error shows.
	shownBytes = 200
)

// schemeName is what stands before "://": a scheme, perhaps after a partition's
// name.
var schemeName = regexp.MustCompile(`^([A-Za-z0-9._-]+=)?[A-Za-z][A-Za-z0-9+.-]*$`)

// plainHost is no host, a name or an address, with a port or without.
var plainHost = regexp.MustCompile(`^(|([A-Za-z0-9._-]+|\[[0-9A-Za-z:.%_-]+\])(:[0-9]{0,5})?)$`)

// maskURLs masks each URL of a list. An element without a scheme that holds an @
// is taken for the rest of a password with a comma in it: what stands before it,
// up to the element with the scheme, is masked as well.
func maskURLs(urls []string) []string {
	masked := make([]string, len(urls))
	split := false
	for i := len(urls) - 1; i >= 0; i-- {
		scheme, _, hasScheme := strings.Cut(urls[i], "://")
		switch {
		case split && hasScheme && schemeName.MatchString(scheme):
			masked[i] = scheme + "://" + asterisks
		case split:
			masked[i] = asterisks
		default:
			masked[i] = maskURL(urls[i])
		}
		split = !hasScheme && (split || strings.Contains(urls[i], "@"))
	}
	return masked
}

// maskURL replaces the user info of a URL, and what follows a ? or #, by
// asterisks: everything up to the last @, wherever a / or : may stand. Without an @,
// a host that is not plain is masked: it may be a user and the beginning of a
// password.
func maskURL(url string) string {
	head, rest, found := strings.Cut(url, "://")
	if !found {
		head, rest = "", url
	} else if schemeName.MatchString(head) {
		head += "://"
	} else {
		head = asterisks + "://"
	}
	user := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user, rest = asterisks+"@", rest[at+1:]
	}
	query := ""
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		query, rest = rest[i:i+1]+asterisks, rest[:i]
	}
	host, path, slash := strings.Cut(rest, "/")
	if user == "" && !plainHost.MatchString(host) {
		host = asterisks
	}
	if slash {
		path = "/" + path
	}
	return head + user + host + path + query
}

// shown quotes a value for an error: cut if long, masked if it looks like a URL.
func shown(value string) string {
	if strings.Contains(value, "://") {
		value = strings.Join(maskURLs(strings.Split(value, ",")), ",")
	}
	if len(value) > shownBytes {
		cut := shownBytes
		for cut > 0 && !utf8.RuneStart(value[cut]) {
			cut--
		}
		return strconv.Quote(value[:cut]) + "…"
	}
	return strconv.Quote(value)
}
