// This file has real servers quote what they do not know, and checks that neither an
// error nor the log shows it.

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/overrides"
)

// Providers rename commands. A server that does not know one answers with its arguments:
// a password, or the keys of entities.
func TestARenamedCommandShowsNoSecret(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ renamed, user string }{
		{"AUTH", ":s3cr3t@"}, {"AUTH", "s3cr3t:s3cr3t@"}, {"EVALSHA", ""}, {"SCRIPT", ""}, {"GET", ""}, {"SET", ""}, {"INCRBY", ""},
	} {
		s := realServer(t, "--databases 4 --rename-command "+row.renamed+" xyz")
		var log bytes.Buffer
		logger := ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		lim := limiterAt(t, "redis://"+row.user+s.Addr(), "p", logger)
		lim.Check("s3cr3t-team", 5)
		shown := []string{}
		for err := lim.Sync(context.Background()); err != nil; err = errors.Unwrap(err) {
			shown = append(shown, fmt.Sprintf("%v %+v %#v", err, err, err))
		}
		if all := strings.Join(shown, "\n") + log.String(); strings.Contains(all, "s3cr3t") {
			t.Errorf("%s renamed: a secret shows:\n%s", row.renamed, all)
		}
		if unaffected := row.renamed == "SCRIPT"; (len(shown) == 0) != (unaffected || row.renamed == "INCRBY") {
			t.Errorf("%s renamed: errors %q", row.renamed, shown)
		}
	}
}

// The source of overrides goes through a pool of the caller's, and its errors reach the
// same log.
func TestAnOverridesSourceShowsNoSecret(t *testing.T) {
	t.Parallel()
	for _, renamed := range []string{"AUTH", "GETRANGE"} {
		s := realServer(t, "--databases 1 --rename-command "+renamed+" xyz")
		pool := &redis.Pool{Dial: func() (redis.Conn, error) {
			options := []redis.DialOption{redis.DialReadTimeout(10 * time.Second)}
			if renamed == "AUTH" {
				options = append(options, redis.DialPassword("s3cr3t"))
			}
			return redis.Dial("tcp", s.Addr(), options...)
		}}
		_, err := overrides.RedisKey(pool, "limits").Load(context.Background())
		if err == nil || !strings.Contains(err.Error(), "unknown command") {
			t.Errorf("%s renamed: %v", renamed, err)
		}
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(fmt.Sprintf("%v %#v", err, err), "s3cr3t") {
				t.Errorf("%s renamed: a secret shows: %v", renamed, err)
			}
		}
		_ = pool.Close()
	}
}
