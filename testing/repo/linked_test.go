package repo

// This file checks that the tests which documents name are there.

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

var namedTest = regexp.MustCompile("\\[`(Test[A-Za-z0-9]+)`\\]\\(([^)]+_test\\.go)\\)")

func TestNamedTestsAreInTheFilesThatAreLinked(t *testing.T) {
	t.Parallel()
	found := 0
	for _, page := range []string{"docs/failures.md", "docs/redis.md"} {
		for _, link := range namedTest.FindAllStringSubmatch(contents(t, page), -1) {
			found++
			file := path.Join(path.Dir(page), link[2])
			if !exists(file) || !strings.Contains(contents(t, file), "\nfunc "+link[1]+"(") {
				t.Errorf("%s says that %s is in %s; it is not", page, link[1], file)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d tests are named: nothing was checked", found)
	}
}
