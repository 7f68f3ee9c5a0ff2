package httplimit

// This file takes forwarding fields apart from the right, the end that the nearest
// proxy wrote, so that nothing an attacker put to the left of it, an unbalanced
// quote for one, changes how it is read.

import (
	"fmt"
	"strings"
)

// lastAddress returns the last element of an X-Forwarded-For line, and the line
// before it. A line that ends with a comma, or is empty, is malformed.
func lastAddress(line string) (node, before string, err error) {
	before, node = cutLast(line, strings.LastIndexByte(line, ','))
	if node == "" {
		return "", "", fmt.Errorf("an element is empty")
	}
	return node, before, nil
}

// cutLast cuts the line at the comma at an index, -1 if there is none. Of a line
// that begins with a comma, what is before it is a space: an element, and empty.
func cutLast(line string, comma int) (before, last string) {
	last = strings.Trim(line[comma+1:], " \t")
	if comma < 0 {
		return "", last
	}
	if before = line[:comma]; before == "" {
		before = " "
	}
	return before, last
}

// lastForwarded returns the node that the last element of a Forwarded line names
// as the client, and the line before that element.
func lastForwarded(line string) (node, before string, err error) {
	found := false
	end := len(line)
	for {
		cut, err := lastSeparator(line[:end])
		if err != nil {
			return "", "", err
		}
		name, value, err := parameter(line[cut+1 : end])
		if err != nil {
			return "", "", err
		}
		if strings.EqualFold(name, "for") {
			if found {
				return "", "", fmt.Errorf("an element has for= twice")
			}
			node, found = value, true
		}
		if cut < 0 || line[cut] == ',' {
			if !found {
				return "", "", fmt.Errorf("an element has no for=")
			}
			before, _ = cutLast(line, cut)
			return node, before, nil
		}
		end = cut
	}
}

// parameter takes name=value apart. Between semicolons there may be nothing.
func parameter(text string) (name, value string, err error) {
	text = strings.Trim(text, " \t")
	if text == "" {
		return "", "", nil
	}
	name, value, ok := strings.Cut(text, "=")
	if !ok || !isToken(name) {
		return "", "", fmt.Errorf("%q is no parameter", text)
	}
	value, err = unquoted(value)
	return name, value, err
}

// lastSeparator returns the index of the last comma or semicolon of the line that
// stands outside quotes, -1 if there is none. It goes from the right: a quote there
// closes a string, which begins at the next quote that no backslash escapes.
func lastSeparator(line string) (int, error) {
	for i := len(line) - 1; i >= 0; i-- {
		switch line[i] {
		case ',', ';':
			return i, nil
		case '"':
			for i--; i >= 0 && (line[i] != '"' || escaped(line, i)); i-- {
			}
			if i < 0 {
				return 0, fmt.Errorf("a quote is not closed")
			}
		}
	}
	return -1, nil
}

// escaped reports whether an odd number of backslashes stands before an index.
func escaped(line string, index int) bool {
	n := 0
	for index--; index >= 0 && line[index] == '\\'; index-- {
		n++
	}
	return n%2 == 1
}

// unquoted returns a parameter's value: a token, or what a quoted string holds.
func unquoted(value string) (string, error) {
	if isToken(value) {
		return value, nil
	}
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return "", fmt.Errorf("%q is neither a token nor quoted", value)
	}
	var b strings.Builder
	for i, end := 1, len(value)-1; i < end; i++ {
		if value[i] == '\\' {
			i++
		} else if value[i] == '"' {
			i = end
		}
		if i == end {
			return "", fmt.Errorf("%q is quoted badly", value)
		}
		b.WriteByte(value[i])
	}
	return b.String(), nil
}

// isToken reports whether s is a token (RFC 9110).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
