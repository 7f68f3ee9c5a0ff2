package goredis

// This file is a command that is sent at most once, and knows whether it was.

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/lua"
)

// A call is a batch as a command. Clients answer a redirection by sending it to another
// node: that is no second time, for the node before refused it.
type call struct {
	*redis.RawWriteToCmd
	args   []any
	script scriptName
	answer answer
	state  atomic.Int32
}

// What is known of a call.
const (
	unsent = iota // not a byte was written, or every node that got it refused it
	sent          // it is being written, or was
	left          // it will not be written any more
)

func newCall(args []any) *call {
	c := &call{args: args}
	c.answer.most = scriptcall.MostElements(args)
	c.script.call = c
	return c
}

// The ways to name the script.
const (
	byHash = iota
	byText
)

// prepare makes the call's command.
func (c *call) prepare(ctx context.Context, way int) *call {
	c.args[0], c.script.text = "evalsha", scriptHash
	if way == byText {
		c.args[0], c.script.text = "eval", scriptText
	}
	c.args[1] = &c.script
	c.RawWriteToCmd = redis.NewRawWriteToCmd(ctx, &c.answer, c.args...)
	return c
}

// NoRetry makes the client return the first error instead of sending again.
func (c *call) NoRetry() bool { return true }

// SetErr is what the client tells of the call's last writing. A refusal is certain: the
// node that it was written to has applied nothing.
func (c *call) SetErr(err error) {
	c.RawWriteToCmd.SetErr(err)
	if text, ok := replyText(err); ok {
		if _, refused := scriptcall.RefusalOf(text); refused {
			c.state.CompareAndSwap(sent, unsent)
		}
	}
}

// mayBeSent reports whether a node may have applied the call.
func (c *call) mayBeSent() bool { return c.state.Load() == sent }

// leave keeps the call from being written, if it was not yet, and reports that.
func (c *call) leave() bool { return c.state.CompareAndSwap(unsent, left) }

// A scriptName is the argument that names the script. The client asks it for its bytes when
// it writes the command, and before any of that can have left this process.
type scriptName struct {
	call *call
	text []byte
}

var (
	scriptHash = []byte(lua.SHA1)
	scriptText = []byte(lua.Source)
)

// MarshalBinary returns the bytes to write, or an error if the call was left.
func (s *scriptName) MarshalBinary() ([]byte, error) {
	c := s.call
	if !c.state.CompareAndSwap(unsent, sent) && c.state.Load() == left {
		return nil, context.Canceled
	}
	c.answer.reset()
	return s.text, nil
}

// String is for those that log commands.
func (s *scriptName) String() string { return lua.SHA1 }
