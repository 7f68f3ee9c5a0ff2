package repo

// This file checks the modules below the root.

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var requiresOurs = regexp.MustCompile(`(?m)^(?:require )?\s*(` + regexp.QuoteMeta(module) + `\S*) (v\S+)`)

// go.work joins all modules, and each of them requires the others at the version that
// will be tagged: a replace counts only here.
func TestModulesAreJoinedAndRequireOneVersion(t *testing.T) {
	t.Parallel()
	all := modules(t)
	var used []string
	for line := range strings.Lines(contents(t, "go.work")) {
		if strings.HasPrefix(line, "\t") {
			used = append(used, path.Clean(strings.TrimSpace(line)))
		}
	}
	slices.Sort(all)
	slices.Sort(used)
	if !slices.Equal(used, all) {
		t.Errorf("go.work uses %q, the modules are %q", used, all)
	}
	versions := map[string]bool{}
	for _, directory := range all {
		for _, required := range requiresOurs.FindAllStringSubmatch(contents(t, path.Join(directory, "go.mod")), -1) {
			versions[required[2]] = true
			if !strings.Contains(contents(t, path.Join(directory, "go.mod")), required[1]+" => ..") {
				t.Errorf("%s/go.mod requires %s without a replace: it could not be built before it is tagged", directory, required[1])
			}
		}
	}
	if len(versions) != 1 || versions["v0.0.0"] {
		t.Errorf("the modules require ours at %v: want one version, that of the next tag", versions)
	}
}
