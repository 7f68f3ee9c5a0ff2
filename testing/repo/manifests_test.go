package repo

// This file checks the Kubernetes manifests in the documents.

import (
	"strings"
	"testing"

	"gopkg.in/yaml.v2"
)

// A manifest is as much of one as the test looks at.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Env       []struct{ Name string }
					Lifecycle struct {
						PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
					}
					ReadinessProbe struct {
						HTTPGet struct{ Path string } `yaml:"httpGet"`
					} `yaml:"readinessProbe"`
				}
			}
		}
	}
}

func TestManifestsParse(t *testing.T) {
	t.Parallel()
	var found []string
	for _, code := range readDocument("docs/kubernetes.md", contents(t, "docs/kubernetes.md")).code {
		if code.language != "yaml" {
			continue
		}
		for text := range strings.SplitSeq(code.text, "\n---\n") {
			var m manifest
			var all map[string]any
			if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
				t.Errorf("docs/kubernetes.md:%d: %v", code.line, err)
				continue
			}
			if err := yaml.Unmarshal([]byte(text), &m); err != nil || m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
				t.Errorf("docs/kubernetes.md:%d: %v; apiVersion %q, kind %q, name %q: want all", code.line, err, m.APIVersion, m.Kind, m.Metadata.Name)
			}
			found = append(found, m.Kind)
			if m.Kind == "Deployment" {
				judgeDeployment(t, &m)
			}
		}
	}
	want := "Deployment Secret HorizontalPodAutoscaler NetworkPolicy PodMonitor"
	if got := strings.Join(found, " "); got != want {
		t.Errorf("docs/kubernetes.md has %s, want %s", got, want)
	}
}

// judgeDeployment wants a grace period beyond what ends a process, probes, and variables
// that the library reads.
func judgeDeployment(t *testing.T, m *manifest) {
	t.Helper()
	const shutdown, closing = 5, 10 // s: see the page
	spec := m.Spec.Template.Spec
	if len(spec.Containers) != 1 {
		t.Fatalf("%d containers", len(spec.Containers))
	}
	c := spec.Containers[0]
	if stops := c.Lifecycle.PreStop.Sleep.Seconds; stops == 0 || spec.Grace <= stops+shutdown+closing {
		t.Errorf("a grace period of %d s after a preStop of %d s: no time for Close", spec.Grace, stops)
	}
	if c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Errorf("readiness by %q", c.ReadinessProbe.HTTPGet.Path)
	}
	fields := contents(t, "docs/configuration.md")
	for _, variable := range c.Env {
		if name, ours := strings.CutPrefix(variable.Name, "GLOBAL_RATE_LIMIT_"); !ours || !strings.Contains(fields, "| `"+name+"` |") {
			t.Errorf("the library reads no %s", variable.Name)
		}
	}
	if len(c.Env) == 0 {
		t.Error("no variables")
	}
}
