package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/statuspage"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// The page beside a service's own routes; programs read it as JSON.
func ExampleNew() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 100
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	defer lim.Close(context.Background())
	lim.Check("team_42", 60)

	mux := http.NewServeMux()
	mux.Handle("GET /debug/ratelimit", statuspage.New(lim, statuspage.WithTop(10)))

	r := httptest.NewRequest("GET", "/debug/ratelimit", nil)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	var status struct {
		Units struct{ Undelivered uint64 }
		Top   struct {
			Entities []struct {
				Key      string
				Pressure float64
			}
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Units.Undelivered, status.Top.Entities)
	// Output: 60 [{team_42 0.6}]
}
