package ratelimit

// This file says which build of the library this is.

import (
	"runtime"
	"runtime/debug"

	"github.com/hanzoai/limiters/internal/exposition"
)

// modulePath is this module's.
const modulePath = "github.com/hanzoai/limiters"

// Version is the version of this module in the running program, as "v1.2.3";
// "(devel)" if it was built from its own source, or from what stands in its place, and
// "unknown" if the program does not tell.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionIn(info)
}

func versionIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		switch {
		case m.Path != modulePath:
		case m.Replace != nil && m.Replace.Version == "", m.Version == "":
			return "(devel)"
		case m.Replace != nil:
			return m.Replace.Version
		default:
			return m.Version
		}
	}
	return "(devel)" // a test of this module
}

// buildInfoLabels are the labels of the metric about the build.
func buildInfoLabels() string {
	return `,version="` + exposition.LabelValue(Version()) + `",go_version="` + exposition.LabelValue(runtime.Version()) + `"`
}
