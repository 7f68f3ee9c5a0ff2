// This file turns text into targets. Its errors name the element, say what is
// accepted, and show nothing that may be a secret.

package redisurl

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// accepted ends every error.
const accepted = "accepted: [name=] and redis://, rediss:// [user:password@]host[:port][/db], " +
	"unix://[user:password@]/path[?db=n] or memory://; percent-encode special characters in a password, a comma as %2C"

// ParseList parses a list of elements, one partition each. Spaces around an
// element are ignored, and so is an empty element. Two partitions of one name are
// an error, and so is memory:// beside servers: each process would count its share
// of the keys alone. All errors are reported, joined; then no target is returned.
func ParseList(elements []string) ([]Target, error) {
	var targets []Target
	var failed []error
	seen := map[string]int{}
	shown := MaskList(elements)
	for i, element := range elements {
		if strings.TrimSpace(element) == "" {
			continue
		}
		target, err := parse(element, shown[i])
		if err != nil {
			failed = append(failed, fmt.Errorf("element %d: %w", i+1, err))
			continue
		}
		if first, ok := seen[target.Name]; ok {
			failed = append(failed, fmt.Errorf("element %d: %q has the name %q of element %d: give one of them another as name=url",
				i+1, shown[i], target.Name, first))
			continue
		}
		seen[target.Name] = i + 1
		targets = append(targets, target)
		if target.Memory != targets[0].Memory {
			failed = append(failed, fmt.Errorf("element %d: %q: memory:// is for one process and no server can stand beside it", i+1, shown[i]))
		}
	}
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return targets, nil
}

// Parse parses one element.
func Parse(element string) (Target, error) { return parse(element, Mask(element)) }

// parse parses one element, which errors show as shown.
func parse(element, shown string) (Target, error) {
	name, address := cutName(strings.TrimSpace(element))
	target, err := parseAddress(address)
	if err != nil {
		return Target{}, fmt.Errorf("%q: %w; %s", shown, err, accepted)
	}
	target.Name = name
	if name == "" {
		target.Name = target.defaultName()
	}
	return target, nil
}

// cutName splits "name=address"; the name is empty if there is none.
func cutName(element string) (name, address string) {
	before, after, ok := strings.Cut(element, "=")
	if !ok || before == "" {
		return "", element
	}
	for _, c := range []byte(before) {
		if c != '.' && c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return "", element
		}
	}
	return before, after
}

// parseAddress parses an element without its name. No error of it quotes any
// part of the address.
func parseAddress(address string) (Target, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Target{}, errors.New("malformed") // what url says quotes the address
	}
	switch {
	case u.Opaque != "":
		return Target{}, errors.New("no \"//\" after the scheme")
	case u.Fragment != "" || strings.HasSuffix(address, "#"):
		return Target{}, errors.New("a '#' that is not percent-encoded")
	}
	switch u.Scheme {
	case "redis", "rediss":
		return parseTCP(u)
	case "unix":
		return parseUnix(u)
	case "memory":
		if address != "memory://" {
			return Target{}, errors.New("memory:// takes nothing more")
		}
		return Target{Memory: true}, nil
	case "":
		return Target{}, errors.New("no scheme")
	}
	return Target{}, errors.New("unknown scheme")
}

// parseTCP parses redis:// and rediss://.
func parseTCP(u *url.URL) (Target, error) {
	t := Target{Network: "tcp", TLS: u.Scheme == "rediss"}
	t.User, t.Password = credentials(u)
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if port == "" {
		port = DefaultPort
	}
	n, err := strconv.Atoi(port)
	switch {
	case host == "":
		return Target{}, errors.New("no host")
	case strings.Contains(host, ":") && u.Host[0] != '[':
		return Target{}, errors.New("a ':' in the host (an IPv6 address takes brackets)")
	case !printable(host):
		return Target{}, errors.New("a host with control characters or spaces")
	case err != nil || n < 1 || n > math.MaxUint16:
		return Target{}, errors.New("the port is not within 1 … 65535")
	case u.RawQuery != "" || u.ForceQuery:
		return Target{}, errors.New("parameters after '?'")
	}
	t.Address = net.JoinHostPort(host, strconv.Itoa(n))
	t.DB, err = parseDB(strings.TrimPrefix(u.Path, "/"))
	return t, err
}

// parseUnix parses unix://.
func parseUnix(u *url.URL) (Target, error) {
	t := Target{Network: "unix", Address: u.Path}
	t.User, t.Password = credentials(u)
	query, err := url.ParseQuery(u.RawQuery)
	switch {
	case u.Host != "":
		return Target{}, errors.New("a host before the socket's path (three slashes, unix:///path, have none)")
	case u.Path == "" || u.Path == "/":
		return Target{}, errors.New("no path to a socket")
	case !printable(u.Path):
		return Target{}, errors.New("a path with control characters or spaces")
	case err != nil || len(query) > 1 || len(query) == 1 && len(query["db"]) != 1:
		return Target{}, errors.New("parameters other than one db")
	}
	t.DB, err = parseDB(query.Get("db"))
	return t, err
}

// credentials returns user and password; a user alone is a password.
func credentials(u *url.URL) (user, password string) {
	if u.User == nil {
		return "", ""
	}
	password, ok := u.User.Password()
	if !ok {
		return "", u.User.Username()
	}
	return u.User.Username(), password
}

// parseDB parses the number of a database; none is 0.
func parseDB(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || !isDigits(s) {
		return 0, errors.New("the database is not a number from 0 on")
	}
	return int(n), nil
}

// isDigits reports that s is one or more ASCII digits.
func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// printable reports that s holds neither spaces nor control characters.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
