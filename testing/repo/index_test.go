package repo

// This file checks that docs/README.md leads to everything in docs/.

import (
	"path"
	"strings"
	"testing"
)

func TestIndexLinksEveryPage(t *testing.T) {
	t.Parallel()
	const index = "docs/README.md"
	linked := map[string]bool{index: true}
	for _, link := range readDocument(index, contents(t, index)).links() {
		target, _, _ := strings.Cut(link, "#")
		linked[path.Join("docs", target)] = true
	}
	for _, pattern := range []string{"*.md", "*.json", "*.yaml"} {
		for _, file := range files(t, pattern) {
			if strings.HasPrefix(file, "docs/") && !strings.HasPrefix(file, "docs/examples/") && !linked[file] {
				t.Errorf("%s does not link to %s", index, file)
			}
		}
	}
	for _, file := range files(t, "main.go") {
		if strings.HasPrefix(file, "docs/examples/") && !linked[file] && !linked[path.Dir(file)] && !linked[path.Join(path.Dir(file), "README.md")] {
			t.Errorf("%s does not link to the example %s", index, path.Dir(file))
		}
	}
}
