// This file takes one right after another from a server's user, and checks what
// each was for: docs/redis.md lists what suffices.

package integration

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/internal/clock"
	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/overrides"
	"github.com/hanzoai/limiters/ratelimit/store"
)

// rights are those that docs/redis.md lists.
var rights = []string{"evalsha", "eval", "script|load", "get", "set", "incrby", "pexpire", "mget", "exists", "time"}

// setUser gives a user these rights and no others on the keys of a pattern.
func setUser(t *testing.T, admin redis.Conn, name, pattern string, commands []string) {
	t.Helper()
	rules := redis.Args{"SETUSER", name, "reset", "on", ">pw", "~" + pattern}
	for _, command := range commands {
		rules = append(rules, "+"+command)
	}
	if _, err := admin.Do("ACL", rules...); err != nil {
		t.Fatalf("ACL %v: %v", rules, err)
	}
}

// without returns the rights but these.
func without(removed ...string) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(right string) bool { return slices.Contains(removed, right) })
}

func TestTheLeastRights(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 4")
	admin := s.Conn()
	for _, row := range []struct {
		name    string
		rights  []string
		pattern string
		cause   string // of a batch that is denied
		// log is part of what the limiter logs; delivered is how many of 5 units
		// arrive; the counter lives forever if immortal.
		log       string
		delivered uint64
		immortal  bool
		skewed    bool // the limiter takes the server's clock for 1970's
	}{
		{name: "all", rights: rights, delivered: 5},
		{name: "no-evalsha", rights: without("evalsha"), cause: store.CausePermission},
		{name: "no-eval", rights: without("eval"), delivered: 5},
		{name: "no-load", rights: without("script|load"), delivered: 5},
		{name: "no-eval-no-load", rights: without("eval", "script|load"), delivered: 5},
		{name: "no-get", rights: without("get"), cause: store.CausePermission},
		{name: "no-set", rights: without("set"), cause: store.CausePermission},
		{name: "no-incrby", rights: without("incrby"), log: "refuses single counters"},
		{name: "no-pexpire", rights: without("pexpire"), log: "refuses to let new counters expire", delivered: 5, immortal: true},
		{name: "no-mget", rights: without("mget"), delivered: 5},
		{name: "no-exists", rights: without("exists"), delivered: 5},
		{name: "no-time", rights: without("time"), delivered: 5, skewed: true},
		{name: "other-keys", rights: rights, pattern: "other:*", cause: store.CausePermission},
		{name: "counters-only", rights: rights, pattern: "counters-only:team:*", cause: store.CausePermission},
	} {
		pattern := row.pattern
		if pattern == "" {
			pattern = row.name + ":*"
		}
		setUser(t, admin, row.name, pattern, row.rights)
		if row.name == "no-eval-no-load" { // somebody else has loaded the script
			expectSynced(t, limiterAt(t, s.URL(), "warm"), admin, "warm")
		}
		var log bytes.Buffer
		ticks := clock.NewFake(time.Time{})
		lim := limiterAt(t, urlAs(s, row.name), row.name, ratelimit.WithClock(ticks), ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if row.cause != "" {
			expectSyncError(t, row.name, lim, store.Denied, row.cause)
			if keys, err := redis.Strings(admin.Do("KEYS", row.name+":*")); err != nil || len(keys) > 0 {
				t.Errorf("%s: keys %q, %v, after a denied batch", row.name, keys, err)
			}
			ticks.Advance(3 * time.Second) // until it is no single failure
			if !strings.Contains(log.String(), "cause=permission") {
				t.Errorf("%s: the log does not say why: %s", row.name, log.String())
			}
			continue
		}
		if err := countFive(lim); err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		stats := lim.Stats()
		if stats.Delivered != row.delivered || stats.Undelivered != 5-row.delivered {
			t.Errorf("%s: delivered %d, undelivered %d, want %d of 5 delivered", row.name, stats.Delivered, stats.Undelivered, row.delivered)
		}
		if got := log.String(); !strings.Contains(got, row.log) || row.log == "" && got != "" {
			t.Errorf("%s: logged %q, want %q", row.name, got, row.log)
		}
		keys, err := redis.Strings(admin.Do("KEYS", row.name+":team:*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			ttl, err := redis.Int(admin.Do("PTTL", key))
			if err != nil || (ttl < 0) != row.immortal {
				t.Errorf("%s: %s lives for %d ms, %v", row.name, key, ttl, err)
			}
		}
		if want := int(row.delivered / 5); len(keys) != want {
			t.Errorf("%s: counters %q, want %d", row.name, keys, want)
		}
		// The limiter's clock is a fake one, that stands in 2026.
		if year := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(stats.Partitions[0].ClockSkew).Year(); (year < 1980) != row.skewed {
			t.Errorf("%s: the server's clock is taken to stand in %d", row.name, year)
		}
	}

	// With nobody's script in the server, EVAL is how it gets there.
	if _, err := admin.Do("SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	setUser(t, admin, "cold", "cold:*", without("eval", "script|load"))
	expectSyncError(t, "no EVAL, no SCRIPT LOAD", limiterAt(t, urlAs(s, "cold"), "cold"), store.Denied, store.CausePermission)

	setUser(t, admin, "db", "db:*", rights)
	expectSyncError(t, "no SELECT", limiterAt(t, urlAs(s, "db")+"/2", "db"), store.NotSent, store.CausePermission)
	setUser(t, admin, "db", "db:*", append(without(), "select"))
	conn := s.Conn()
	if _, err := conn.Do("SELECT", 2); err != nil {
		t.Fatal(err)
	}
	expectSynced(t, limiterAt(t, urlAs(s, "db")+"/2", "db"), conn, "db")
}

// A right that is taken away and given back, while a limiter counts: no unit is
// lost.
func TestARightThatComesBack(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1")
	admin := s.Conn()
	for _, removed := range []string{"evalsha", "get", "set", "incrby"} {
		setUser(t, admin, removed, removed+":*", rights)
		lim := limiterAt(t, urlAs(s, removed), removed)
		expectSynced(t, lim, admin, removed)
		setUser(t, admin, removed, removed+":*", without(removed))
		for range 3 {
			_ = countFive(lim)
		}
		if got := lim.Stats().Undelivered; got != 15 {
			t.Errorf("without %s: %d units undelivered, want 15", removed, got)
		}
		setUser(t, admin, removed, removed+":*", rights)
		if err := lim.Sync(context.Background()); err != nil {
			t.Errorf("%s came back: %v", removed, err)
		}
		expectSynced(t, lim, admin, removed)
	}
}

// A source of overrides needs GETRANGE on its key.
func TestTheLeastRightsOfAnOverridesKey(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1")
	admin := s.Conn()
	if _, err := admin.Do("SET", "limits:overrides", `{"team_42": 5000}`); err != nil {
		t.Fatal(err)
	}
	setUser(t, admin, "reader", "limits:overrides", []string{"getrange"})
	setUser(t, admin, "stranger", "other", []string{"getrange"})
	load := func(user string) (map[string]uint64, error) {
		pool := &redis.Pool{Dial: func() (redis.Conn, error) {
			return redis.DialURL(urlAs(s, user), redis.DialReadTimeout(10*time.Second))
		}}
		defer func() { _ = pool.Close() }()
		return overrides.RedisKey(pool, "limits:overrides").Load(context.Background())
	}
	if got, err := load("reader"); err != nil || len(got) != 1 || got["team_42"] != 5000 {
		t.Errorf("with GETRANGE: %v, %v", got, err)
	}
	if got, err := load("stranger"); err == nil || got != nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("without the key: %v, %v", got, err)
	}
}

// The rights in the document are those that are tested here.
func TestTheRightsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := "+" + strings.Join(rights, " +"); !strings.Contains(string(text), want) {
		t.Errorf("docs/redis.md does not list %s", want)
	}
}
