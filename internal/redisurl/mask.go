// This file keeps secrets out of errors, settings and logs. An address is masked
// without being parsed, so that a malformed one gives nothing away either.

package redisurl

import (
	"regexp"
	"strings"
)

// masked stands for what is not shown.
const masked = "***"

// schemeName is what stands before "://": a scheme, perhaps after a partition's
// name.
var schemeName = regexp.MustCompile(`^([A-Za-z0-9._-]+=)?[A-Za-z][A-Za-z0-9+.-]*$`)

// plainHost is no host, a name or an address, with a port or without.
var plainHost = regexp.MustCompile(`^(|([A-Za-z0-9._-]+|\[[0-9A-Za-z:.%_-]+\])(:[0-9]{0,5})?)$`)

// MaskList is the elements of a list as they may be shown. An element without a
// scheme that holds an @ is taken for the rest of a password with a comma in it:
// what stands before it, up to the element with the scheme, is masked as well.
func MaskList(elements []string) []string {
	shown := make([]string, len(elements))
	split := false
	for i := len(elements) - 1; i >= 0; i-- {
		element := strings.TrimSpace(elements[i])
		scheme, _, hasScheme := strings.Cut(element, "://")
		switch {
		case split && hasScheme && schemeName.MatchString(scheme):
			shown[i] = scheme + "://" + masked
		case split:
			shown[i] = masked
		default:
			shown[i] = Mask(element)
		}
		split = !hasScheme && (split || strings.Contains(element, "@"))
	}
	return shown
}

// Mask is an element as it may be shown, whether it can be parsed or not, without
// the spaces around it. Masked are user information, that is everything up to the
// last @, wherever a / or : may stand; parameters other than the number of a
// database; and, if there is no @, whatever may be a user and the beginning of a
// password instead of a host.
func Mask(element string) string {
	element = strings.TrimSpace(element)
	scheme, rest, found := strings.Cut(element, "://")
	switch {
	case !found:
		scheme, rest = "", element
	case schemeName.MatchString(scheme):
		scheme += "://"
	default:
		scheme = masked + "://"
	}
	at := strings.LastIndexByte(rest, '@')
	user := ""
	if at >= 0 {
		user, rest = masked+"@", rest[at+1:]
	}
	rest, query := cutQuery(rest)
	if at < 0 {
		rest = maskHost(scheme, rest, query != "")
	}
	return scheme + user + rest + query
}

// cutQuery splits off what follows a ? or #, and masks it unless it is the number
// of a database.
func cutQuery(rest string) (before, query string) {
	i := strings.IndexAny(rest, "?#")
	if i < 0 {
		return rest, ""
	}
	before, query = rest[:i], rest[i:]
	if db, ok := strings.CutPrefix(query, "?db="); ok && isDigits(db) {
		return before, query
	}
	return before, query[:1] + masked
}

// maskHost masks a host that may be a user and the beginning of a password: one
// that is not plain, or has a port and then something else than a database.
func maskHost(scheme, rest string, more bool) string {
	host, path, slash := strings.Cut(rest, "/")
	if strings.HasSuffix(scheme, "unix://") && plainHost.MatchString(host) {
		return rest
	}
	if path != "" && !isDigits(path) {
		return masked
	}
	if !plainHost.MatchString(host) || more && strings.Contains(host, ":") {
		host = masked
	}
	if slash {
		host += "/" + path
	}
	return host
}
