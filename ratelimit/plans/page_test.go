package plans

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	t.Parallel()
	f := open(t, strings.Replace(file, "plans:", "default_plan: pro\nplans:", 1))
	page := f.Page()
	get := func(method, target string) (int, string) {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		return w.Code, w.Body.String()
	}
	f.passes("GET /v1/x", "bob", 60, http.StatusTooManyRequests)
	f.reload(strings.Replace(file, "threshold: 8", "threshold: 9", 1))
	f.write("limits: <b>")
	f.Refresh(t.Context())
	for _, row := range []struct {
		method, target string
		status         int
		has            []string
	}{
		{"GET", "/", 200, []string{
			`<a href="?limit=burst">burst</a>`, "limit hourly: threshold 9, was 8", "The file was refused", "&lt;b&gt;", "POST /v1/export",
			"burst 50 hourly 100", "1 keys with plans",
		}},
		{"HEAD", "/", 200, nil},
		{"GET", "/?limit=burst", 200, []string{"Rate limiter default/burst"}},
		{"GET", "/?limit=burst&format=json", 200, []string{`"scope": "default/burst"`}},
		{"GET", "/?limit=x", 404, []string{"the limits are all, burst, hourly"}},
		{"POST", "/", 405, nil},
	} {
		status, body := get(row.method, row.target)
		if status != row.status {
			t.Errorf("%s %s: status %d, want %d", row.method, row.target, status, row.status)
		}
		for _, want := range row.has {
			if !strings.Contains(body, want) {
				t.Errorf("%s %s lacks %q:\n%s", row.method, row.target, want, body)
			}
		}
		if row.target == "/" && (strings.Contains(body, "<b>") || strings.Contains(body, "bob") || strings.Contains(body, "ann<")) {
			t.Errorf("%s %s shows a key, or what is not escaped:\n%s", row.method, row.target, body)
		}
	}
	_, body := get("GET", "/?format=json")
	var said struct {
		Problem string
		Changes []string
		Limits  []struct {
			Name             string
			Allowed, Limited uint64
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatal(err)
	}
	if len(said.Limits) != 3 || said.Limits[1].Name != "burst" || said.Limits[1].Allowed != 50 || said.Limits[1].Limited != 10 ||
		!strings.Contains(said.Problem, "limits: it is") || len(said.Changes) != 2 {
		t.Errorf("the page says %+v", said)
	}
}
