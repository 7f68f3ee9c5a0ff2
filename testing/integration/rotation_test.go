// This file changes a server's password under limiters that count, as services that
// hand out tokens do: the recipe of docs/redis.md.

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/store"
	"github.com/hanzoai/limiters/testing/redistest"
)

// The tokens are handed out by a service, and accepted by a server until the next one is.
type tokens struct {
	mu      sync.Mutex
	current string // guarded by mu
	asked   int    // guarded by mu
}

// token is the current one, as of this moment.
func (s *tokens) token(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.current, nil
}

// rotate makes another token the server's, and ends the connections of the old one.
func (s *tokens) rotate(t *testing.T, admin redis.Conn, n int) {
	t.Helper()
	token := fmt.Sprintf("token-%d", n)
	if _, err := admin.Do("ACL", "SETUSER", "app", "reset", "on", ">"+token, "~p:*", "+@all"); err != nil {
		t.Error(err)
	}
	if _, err := admin.Do("CLIENT", "KILL", "USER", "app"); err != nil {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond) // until then the service hands out what the server refuses
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = token
}

// rotatingPool is the recipe: a pool whose dial function asks for the token.
func rotatingPool(s *redistest.Server, token func(context.Context) (string, error)) *redis.Pool {
	return &redis.Pool{
		MaxIdle: 1,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			password, err := token(ctx)
			if err != nil {
				return nil, err
			}
			return redis.DialContext(ctx, "tcp", s.Addr(), redis.DialUsername("app"), redis.DialPassword(password),
				redis.DialConnectTimeout(10*time.Second), redis.DialReadTimeout(10*time.Second), redis.DialWriteTimeout(10*time.Second))
		},
	}
}

// Units flow while the password changes; each is counted once.
func TestCredentialsThatRotate(t *testing.T) {
	t.Parallel()
	s := realServer(t, "--databases 1")
	admin := s.Conn()
	var service tokens
	service.rotate(t, admin, 0)
	pool := rotatingPool(s, service.token)
	t.Cleanup(func() { _ = pool.Close() })
	lim := limiterAt(t, "", "p", ratelimit.WithPools(ratelimit.Pool{Name: "main", Pool: pool}))

	const rotations, pause = 8, 150 * time.Millisecond
	done := make(chan struct{})
	go func() { // ends after its rotations
		defer close(done)
		for n := range rotations {
			time.Sleep(pause)
			service.rotate(t, admin, n+1)
		}
		time.Sleep(pause)
	}()
	synced, refused, counting := 0, 0, true
	for counting {
		select {
		case <-done:
			counting = false
		default:
		}
		err := countFive(lim)
		var failed *store.Error
		switch {
		case err == nil:
			synced++
		case errors.As(err, &failed) && (failed.Cause == store.CauseAuth || failed.Cause == store.CauseClosed):
			refused++
		default:
			t.Errorf("%v, want it to be about the password, or the connection", err)
		}
		time.Sleep(time.Millisecond)
	}
	expectSynced(t, lim, admin, "p")
	if st := lim.Stats(); st.Dropped.Total() != 0 || st.Undelivered != 0 {
		t.Errorf("undelivered %d, dropped %+v", st.Undelivered, st.Dropped)
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	if service.asked < rotations || synced < rotations || refused < rotations {
		t.Errorf("%d tokens were asked for, %d of %d syncs succeeded: nothing was tested", service.asked, synced, synced+refused)
	}
	t.Logf("%d rotations, %d connections, %d of %d syncs failed", rotations, service.asked, refused, synced+refused)
}
