package ratelimit

import (
	"runtime/debug"
	"testing"
)

func TestTheVersionIsThatOfTheModule(t *testing.T) {
	t.Parallel()
	ours := func(version string) *debug.Module { return &debug.Module{Path: modulePath, Version: version} }
	replaced := ours("v1.0.0")
	replaced.Replace = &debug.Module{Path: "../limiters"}
	forked := ours("v1.0.0")
	forked.Replace = &debug.Module{Path: "example.com/fork", Version: "v1.0.1"}
	other := &debug.Module{Path: modulePath + "/ratelimit/goredis", Version: "v9.9.9"}
	for i, row := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{Deps: []*debug.Module{other, ours("v1.2.3")}}, "v1.2.3"},
		{debug.BuildInfo{Main: *ours("(devel)")}, "(devel)"},
		{debug.BuildInfo{Main: *ours("")}, "(devel)"},
		{debug.BuildInfo{Deps: []*debug.Module{replaced}}, "(devel)"},
		{debug.BuildInfo{Deps: []*debug.Module{forked}}, "v1.0.1"},
		{debug.BuildInfo{Deps: []*debug.Module{other}}, "(devel)"},
	} {
		if got := versionIn(&row.info); got != row.want {
			t.Errorf("row %d: %q, want %q", i, got, row.want)
		}
	}
}
