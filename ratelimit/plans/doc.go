// Package plans limits requests by a file: routes, the limits that each has to pass, and plans
// that say how much a key may have. The file is reloaded while the process runs.
//
//	limits:
//	  per_second: {threshold: 2, window: 1s}
//	  monthly: {threshold: 1000, calendar: month}
//	plans:
//	  pro: {per_second: 50, monthly: 100000}
//	keys:
//	  k-4711: pro
//	routes:
//	  - {pattern: GET /v1/, key: "header:X-Api-Key", limits: [per_second, monthly]}
//
// A program opens it and puts its middleware before its handler:
//
//	p, err := plans.Open("plans.yaml", cfg)
//	…
//	go p.Run(ctx, 10*time.Second)
//	http.ListenAndServe(addr, p.Middleware(mux))
//
// docs/plans.md has every field, and what a reload does.
//
// # Errors
//
// A file is read strictly and whole: a name that is not known, a value twice, a limit that
// does not exist is a [Problem] with file, line and field. A file that is wrong changes nothing.
//
// # Concurrency
//
// [Plans] may be used from any goroutine. Functions given to it are called from the goroutine
// of the request, and must be safe for concurrent use. [Plans.Refresh] holds up no decision.
package plans
