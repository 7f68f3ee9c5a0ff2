package goredis

// This file reads the script's answer as it arrives: integers, and no more than were
// asked for, whatever lengths the server announces.

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
)

// maxText is the longest text that is read; a right answer has none.
const maxText = 1 << 12

// errAnswer is the kind of error of an answer that is none of the script's.
var errAnswer = errors.New("goredis: not an answer of the script")

// An answer collects what a client writes to it: lines, each without and then with its
// end, and texts.
type answer struct {
	most int // elements

	values  []any // of an array
	single  any   // what is no array
	isArray bool
	lineEnd bool // the end of a line is next
	text    int  // bytes of a text, its end included, that are still to come
}

// reset forgets what was written.
func (a *answer) reset() {
	*a = answer{most: a.most, values: a.values[:0]}
}

// value is an array as []any, an integer as int64, a text as a string.
func (a *answer) value() any {
	if a.isArray {
		return a.values
	}
	return a.single
}

// Write takes the next line or part of a text. An error reply is its error, which a
// client takes for one that it read itself.
func (a *answer) Write(p []byte) (int, error) {
	switch {
	case a.text > 0:
		a.text -= len(p)
		return len(p), nil
	case a.lineEnd:
		a.lineEnd = false
		return len(p), nil
	}
	a.lineEnd = true
	if err := a.line(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// line reads one line.
func (a *answer) line(p []byte) error {
	if len(p) == 0 {
		return fmt.Errorf("%w: an empty line", errAnswer)
	}
	body := string(p[1:])
	switch p[0] {
	case '-':
		if a.isArray {
			return a.add(errors.New(scriptcall.Shown(body)))
		}
		return replyError(body)
	case ':':
		n, err := strconv.ParseInt(body, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: a malformed integer", errAnswer)
		}
		return a.add(n)
	case '+':
		return a.add(body)
	case '_':
		return a.add(nil)
	case '$', '*':
		return a.announced(p[0], body)
	}
	if err := scriptcall.ForeignPeer(p); err != nil {
		return err
	}
	return fmt.Errorf("%w: a reply of type %q", errAnswer, p[0])
}

// announced reads the line before a text or an array.
func (a *answer) announced(kind byte, body string) error {
	n, err := strconv.Atoi(body)
	switch {
	case body == "-1":
		return a.add(nil)
	case err != nil || n < 0:
		return fmt.Errorf("%w: a malformed length", errAnswer)
	case kind == '$' && n > maxText:
		return fmt.Errorf("%w: a text of %d bytes", errAnswer, n)
	case kind == '$':
		a.text = n + len("\r\n")
		// The end of the line comes first.
		a.text, a.lineEnd = a.text+len("\r\n"), false
		return a.add("text")
	case a.isArray:
		return fmt.Errorf("%w: an array in an array", errAnswer)
	case n > a.most:
		return fmt.Errorf("%w: %d elements, and at most %d were asked for", errAnswer, n, a.most)
	}
	a.isArray, a.values = true, slices.Grow(a.values, n)
	return nil
}

// add takes an element, or all there is.
func (a *answer) add(value any) error {
	if a.isArray {
		a.values = append(a.values, value)
		return nil
	}
	if a.single = value; value == nil {
		return redis.Nil
	}
	return nil
}

// A replyError is an error reply of the server.
type replyError string

// Error returns the server's text.
func (e replyError) Error() string { return string(e) }

// RedisError marks it as a reply.
func (replyError) RedisError() {}
