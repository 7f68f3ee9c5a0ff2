// This file tests how long an attempt waits for its reply.

package redisstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A server that never answers is waited for as long as the batch's patience says, or
// the reply timeout if that is longer, and no longer than the context.
func TestPatienceIsHowLongAReplyIsWaitedFor(t *testing.T) {
	t.Parallel()
	const most = 20 * time.Second // of a busy machine
	for _, row := range []struct{ timeout, patience, ctx, want time.Duration }{
		{50 * time.Millisecond, 0, 0, 50 * time.Millisecond},
		{50 * time.Millisecond, 10 * time.Millisecond, 0, 50 * time.Millisecond},
		{50 * time.Millisecond, 300 * time.Millisecond, 0, 300 * time.Millisecond},
		{50 * time.Millisecond, time.Hour, 150 * time.Millisecond, 150 * time.Millisecond},
	} {
		s := &script{answers: []string{"hang"}}
		pool := s.pool()
		r := New(pool, Timeouts{Reply: row.timeout})
		b := small()
		b.Patience = row.patience
		ctx := context.Background()
		if row.ctx > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, row.ctx)
			defer cancel()
		}
		began := time.Now()
		err := r.Apply(ctx, b, &store.Reply{})
		took := time.Since(began)
		var failed *store.Error
		if !errors.As(err, &failed) || failed.Fate != store.Unknown || failed.Cause != store.CauseTimeout {
			t.Errorf("%+v: %v, want a timeout of unknown fate", row, err)
		}
		if took < row.want || took > row.want+most {
			t.Errorf("%+v: waited for %v", row, took)
		}
		_ = pool.Close()
	}
}
