package scriptcall

// This file cuts what a server quotes out of its error replies. A server that does
// not know a command answers with its arguments: the password of AUTH, the keys of
// EVALSHA. Errors reach logs.

import (
	"strings"
	"unicode/utf8"
)

// shownBytes is how much of an error reply is shown.
const shownBytes = 300

// cut stands for what is not shown.
const cut = "***"

// harmless is what may be shown in quotes, in lower case.
var harmless = map[string]bool{
	"eval": true, "evalsha": true, "script": true, "script|load": true, "load": true,
	"get": true, "set": true, "incrby": true, "decrby": true, "pexpire": true, "mget": true, "exists": true, "time": true,
	"auth": true, "hello": true, "select": true, "ping": true, "asking": true, "client": true,
	"cluster": true, "cluster|slots": true, "getrange": true, "getrange_ro": true,
	"maxmemory": true, "no": true, "yes": true, "local": true, "no-cluster": true,
}

// Shown is the text of an error reply as it may be shown: without what it quotes,
// names of commands apart, without the secrets, if it repeats one unquoted, and in
// one line of limited length.
func Shown(text string, secrets ...string) string {
	const arguments = "with args beginning with:"
	if i := strings.Index(text, arguments); i >= 0 {
		text = text[:i+len(arguments)] + " " + cut
	}
	for _, secret := range secrets {
		if len(secret) >= 3 { // shorter ones are in every other word
			text = strings.ReplaceAll(text, secret, cut)
		}
	}
	text = oneLine(cutQuoted(text))
	if len(text) > shownBytes {
		end := shownBytes
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return text
}

// cutQuoted replaces what stands in quotes. The text within may hold quotes itself,
// or be cut short by the server: so everything goes up to the last quote of the same
// kind, and what is never closed goes to the end.
func cutQuoted(text string) string {
	var b strings.Builder
	for {
		open := opening(text)
		if open < 0 {
			b.WriteString(text)
			return b.String()
		}
		quote, rest := text[open], text[open+1:]
		b.WriteString(text[:open+1])
		if word, after, ok := strings.Cut(rest, string(quote)); ok && harmless[strings.ToLower(word)] {
			b.WriteString(word)
			b.WriteByte(quote)
			text = after
			continue
		}
		b.WriteString(cut)
		last := strings.LastIndexByte(rest, quote)
		if last < 0 {
			return b.String()
		}
		b.WriteByte(quote)
		text = rest[last+1:]
	}
}

// opening is the index of the first quote that opens something, -1 if there is none:
// one within a word is an apostrophe.
func opening(text string) int {
	for i := range len(text) {
		switch text[i] {
		case '\'', '"', '`':
			if i == 0 || !isWord(text[i-1]) {
				return i
			}
		}
	}
	return -1
}

// isWord reports that a word goes on after c.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= utf8.RuneSelf
}

// oneLine replaces control characters and what is no text.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}
