package overrides_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/overrides"
)

// An operator blocks an entity, deletes the file, which changes nothing, and then
// says that there are no overrides.
func Example() {
	dir, err := os.MkdirTemp("", "overrides")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "overrides.json")

	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer func() { _ = lim.Close(ctx) }()

	// A service runs: go overrides.Watch(ctx, lim, overrides.File(path), 10*time.Second)
	w := overrides.New(lim, overrides.File(path), overrides.WithLogger(nil))
	defer w.Close()
	step := func(what string) {
		err := w.Refresh(ctx)
		fmt.Printf("%s: read: %t, allowed: %t\n", what, err == nil, lim.Allow("team_7"))
	}

	_ = os.WriteFile(path, []byte(`{"team_7": 0}`), 0o600)
	step("blocked")
	_ = os.Remove(path)
	step("file deleted")
	_ = os.WriteFile(path, []byte(`{}`), 0o600)
	step("none")
	// Output:
	// blocked: read: true, allowed: false
	// file deleted: read: false, allowed: false
	// none: read: true, allowed: true
}
