package goredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A server that never answers is waited for as long as the batch's patience says, or
// the client's read timeout if that is longer; the next batch is waited for as before.
func TestPatienceIsHowLongAReplyIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := serveScript(t, "hang", "hang", "hang", fine)
	r := open(t, &redis.Options{Addr: s.addr, ReadTimeout: 80 * time.Millisecond, PoolSize: 1})
	for _, row := range []struct{ patience, least, most time.Duration }{
		{0, 80 * time.Millisecond, 20 * time.Second},
		{900 * time.Millisecond, 900 * time.Millisecond, 20 * time.Second},
		{10 * time.Millisecond, 80 * time.Millisecond, 850 * time.Millisecond},
	} {
		b := small()
		b.Patience = row.patience
		began := time.Now()
		err := r.Apply(context.Background(), b, &store.Reply{})
		took := time.Since(began)
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Unknown || failed.Cause != store.CauseTimeout {
			t.Errorf("%+v: %v, want a timeout of unknown fate", row, err)
		}
		if took < row.least || took > row.most {
			t.Errorf("%+v: waited for %v", row, took)
		}
	}
	if err := r.Apply(context.Background(), small(), &store.Reply{}); err != nil {
		t.Errorf("after three timeouts: %v", err)
	}
}
