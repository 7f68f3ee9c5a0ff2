// Package ratelimit limits what a fleet of processes does to one shared rate.
//
// Every process decides locally: [Limiter.Check] does no I/O. Once per tick a
// background loop sends what this process counted to Redis and learns what the
// fleet counted, in one script call per Redis.
//
//	cfg, err := ratelimit.ConfigFromEnv()
//	…
//	lim, err := ratelimit.New(cfg)
//	…
//	defer lim.Close(ctx)
//
//	if d := lim.Check("team_42", 1); !d.Allowed() {
//		// come back in d.RetryAfter()
//	}
//
// # Deciding
//
// An entity is whatever an entity key names: a user, a tenant, an address. It may
// pass up to its threshold of units per window: the exact override of its key, else
// what the [Resolver] answers, else Config.GlobalThreshold. A check compares the
// entity's level, its own units included, with the threshold, and limits it from
// there on: a threshold of T lets T − 1 single units into an empty window, or T if
// Config.Inclusive is set.
//
// What a level is depends on the kind of window, Config.Window, and so does what is
// promised:
//
//   - [WindowLeaky], the default: the fleet's count as of the last sync, leaking at
//     threshold / window and never above what that count still weighs in the window, plus
//     what this process counted and the fleet's count does not contain yet. It holds the
//     rate on average. It does not hold a window: of a threshold of 100, 99 units may pass
//     at once and nearly as many again before the window is over.
//   - [WindowSliding]: what this process knows of the last window, slice by slice. It holds
//     every window, but for what nodes do not know of each other yet, and refuses nobody
//     who stays below the threshold.
//   - [WindowFixed]: what came since the window began. It holds a quota per window, hour,
//     day, week or month, and lets two of them pass around a boundary.
//
// Config.BurstInterval bounds in each how much passes at once. Limited requests are not
// counted unless Config.CountLimited says so. A key seen for the first time is allowed.
// The [Decision] says what it rests on, and when to come back.
//
// # Time
//
// Windows are aligned to the Unix epoch, so that all nodes agree on them. A check
// reads the clock once: the wall says which window it is, the monotonic part how
// much has leaked. Clocks that step or differ cost accuracy for at most two
// windows. Tests use a fake clock ([WithClock]) and step through hours in
// milliseconds; see package ratelimittest.
//
// # Concurrency
//
// All methods of a [Limiter] may be called from any goroutine at any time. Checks
// of one entity happen one after the other; no number of goroutines gets one unit
// too many from one process. A [Decision] is a value.
//
// # When Redis is down
//
// Checks go on, on what the fleet's count still weighs and on this process's own
// count; two windows later only the latter is left. What was counted waits and is
// delivered when Redis is back, as long as a window that can see it lasts. A batch
// whose fate is unknown is sent again under its number, and counted once. A partition is
// down once three attempts in a row have failed over a second or more; one without traffic
// is asked every ten seconds. One log line says that it is down, one that it is up again,
// after how long and with how many units dropped; of a link that comes and goes the log
// hears once a minute.
//
// # Closing
//
// [Limiter.Close] delivers what is left and reports to the unit what it could not.
// Checks after it are still limited, by this process alone.
package ratelimit
