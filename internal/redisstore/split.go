package redisstore

// This file finds a proxy that spreads the keys of one partition over several servers.
// Such a proxy sends a script to the server of its first key, the sequence key, which
// differs from node to node: so each node counts on a server of its own, and the fleet
// shares no budget. Nothing fails; it must be looked for.

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/scriptcall"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// probes is how many keys are asked about. With two servers one in 2^15 goes unnoticed.
const probes = 16

// SplitWarning is what Options.Warn is told.
const SplitWarning = "a proxy spreads this partition's keys over several servers, so that nodes do not share their counts: " +
	"give the partition a HashTag, and have the proxy hash by it"

// probe looks once, after a batch was acknowledged, whether scripts under other first
// keys find its sequence key. It is told of by warn, and done only where there may be a
// proxy: on a pool of the caller's, or where SCRIPT LOAD was not answered. The scripts
// are repetitions of a batch that never was, so they write nothing. It requires mu.
func (s *Store) probe(conn redis.Conn, batch *store.Batch) {
	if s.probed || s.warn == nil || s.dialer != nil && s.dialer.noLoad.Load() == 0 {
		return
	}
	s.probed = true
	found, missing := s.look(conn, batch)
	if found > 0 && missing > 0 {
		s.warn(SplitWarning)
	}
}

// look asks under other first keys for the sequence key of an acknowledged batch, and
// returns how many scripts found it, and how many did not. What fails counts as
// neither. It requires mu.
func (s *Store) look(conn redis.Conn, batch *store.Batch) (found, missing int) {
	sound := false
	defer func() {
		_ = recover() // see attempt
		if !sound {
			drop(conn)
		}
	}()
	defer s.request.Release()
	asked := *batch
	asked.Number, asked.Retry = 2, true
	asked.Writes, asked.Reads = nil, []string{batch.Sequence}
	// What the keys differ by stands far from their end: poor hashes need that.
	for i := range probes {
		asked.Sequence = fmt.Sprintf("%s:%d:another:seq", batch.Sequence, i)
		args := s.request.Encode(&asked)
		s.expect(probes * scriptcall.MostElements(args))
		args[0] = boxedSource // by EVALSHA each server would have to know the script
		if err := conn.Send("EVAL", args...); err != nil {
			return 0, 0
		}
	}
	if err := conn.Flush(); err != nil {
		return 0, 0
	}
	deadline := time.Now().Add(s.timeouts.Reply)
	for range probes {
		raw, err := redis.ReceiveWithTimeout(conn, max(time.Until(deadline), time.Nanosecond))
		if err != nil {
			if _, ok := replyText(err); ok {
				continue
			}
			return 0, 0
		}
		var reply store.Reply
		switch scriptcall.Decode(raw, &asked, &reply) {
		case nil:
			if reply.Reads[0] != 0 {
				found++
			} else if reply.Outcome == store.Orphan {
				missing++
			}
		}
	}
	sound = true
	return found, missing
}
