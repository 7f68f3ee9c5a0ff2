package faultproxy

// This file reads whole commands and replies of the Redis protocol, version 2.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

var errFrame = errors.New("faultproxy: not the Redis protocol")

// maxDepth bounds how deep replies nest.
const maxDepth = 8

// readCommand reads one command. raw is all of its bytes, args point into it.
func readCommand(r *bufio.Reader) (raw []byte, args [][]byte, err error) {
	raw, n, err := readHead(r, nil, '*')
	if err != nil {
		return nil, nil, err
	}
	spans := make([][2]int, 0, max(0, n))
	for range n {
		var size int
		if raw, size, err = readHead(r, raw, '$'); err != nil {
			return nil, nil, err
		}
		from := len(raw)
		if raw, err = readBytes(r, raw, size+2); err != nil {
			return nil, nil, err
		}
		spans = append(spans, [2]int{from, from + size})
	}
	for _, s := range spans {
		args = append(args, raw[s[0]:s[1]])
	}
	return raw, args, nil
}

// readReply reads one reply and returns its bytes.
func readReply(r *bufio.Reader) ([]byte, error) { return appendReply(r, nil, 0) }

func appendReply(r *bufio.Reader, raw []byte, depth int) ([]byte, error) {
	kind, err := r.Peek(1)
	if err != nil {
		return nil, err
	}
	switch kind[0] {
	case '+', '-', ':':
		return readLine(r, raw)
	case '$':
		raw, size, err := readHead(r, raw, '$')
		if err != nil || size < 0 {
			return raw, err
		}
		return readBytes(r, raw, size+2)
	case '*':
		raw, n, err := readHead(r, raw, '*')
		if err != nil || depth == maxDepth {
			return nil, errors.Join(err, errFrame)
		}
		for range n {
			if raw, err = appendReply(r, raw, depth+1); err != nil {
				return nil, err
			}
		}
		return raw, nil
	}
	return nil, fmt.Errorf("%w: a reply of type %q", errFrame, kind[0])
}

// readHead reads a line of a kind and a number, and appends it to raw.
func readHead(r *bufio.Reader, raw []byte, kind byte) ([]byte, int, error) {
	from := len(raw)
	raw, err := readLine(r, raw)
	if err != nil {
		return nil, 0, err
	}
	line := raw[from:]
	if line[0] != kind || len(line) < 4 {
		return nil, 0, fmt.Errorf("%w: %q where %q was due", errFrame, line, kind)
	}
	n, err := strconv.Atoi(string(line[1 : len(line)-2]))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %q", errFrame, line)
	}
	return raw, n, nil
}

func readLine(r *bufio.Reader, raw []byte) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	return append(raw, line...), err
}

func readBytes(r *bufio.Reader, raw []byte, n int) ([]byte, error) {
	if n < 2 {
		return nil, errFrame
	}
	from := len(raw)
	raw = append(raw, make([]byte, n)...)
	_, err := io.ReadFull(r, raw[from:])
	return raw, err
}
