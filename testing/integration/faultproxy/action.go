package faultproxy

// This file lists what a proxy can do with a request.

import "time"

// A Request is one command that a client has sent whole.
type Request struct {
	// Number counts the requests of the proxy, from 1, those of every connection.
	Number uint64
	// Args are the command and its arguments. They are the hook's only until it
	// returns.
	Args [][]byte
}

// Is reports whether the request is this command, written in capitals.
func (r *Request) Is(command string) bool { return len(r.Args) > 0 && string(r.Args[0]) == command }

// An Action is what becomes of one request. The zero value is [Pass].
type Action struct {
	do    deed
	delay time.Duration
	text  string
}

type deed uint8

const (
	pass deed = iota
	cutBefore
	cutInside
	cutAfter
	cutReply
	delayReply
	holdRequest
	answer
	answerAfter
	twice
	hang
)

// The actions that need no more said.
var (
	Pass      = Action{}
	CutBefore = Action{do: cutBefore} // the connection is reset; the server sees nothing
	CutInside = Action{do: cutInside} // the server gets half of the request, then the connection ends
	CutAfter  = Action{do: cutAfter}  // the server answers; the client's connection is reset instead
	Twice     = Action{do: twice}     // the server gets it twice; the client hears the second reply alone
	CutReply  = Action{do: cutReply}  // the client gets half of the reply, then a reset
	Hang      = Action{do: hang}      // the server sees nothing, and the client hears nothing
)

// Delay passes the request on and holds its reply back for d; it is then delivered
// on the same connection, if that is still there.
func Delay(d time.Duration) Action { return Action{do: delayReply, delay: d} }

// Hold holds the request back for d, and then passes it on to the server even if
// the client has gone.
func Hold(d time.Duration) Action { return Action{do: holdRequest, delay: d} }

// Answer answers the request with an error reply of this text. The server sees
// nothing.
func Answer(text string) Action { return Action{do: answer, text: text} }

// AnswerAfter passes the request on, and puts an error reply of this text in the
// place of the server's.
func AnswerAfter(text string) Action { return Action{do: answerAfter, text: text} }
