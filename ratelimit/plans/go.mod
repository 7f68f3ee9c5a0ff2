// YAML stays out of the library's go.mod: whoever has no plans shall not have to
// download, audit and update it.
module github.com/hanzoai/limiters/ratelimit/plans

go 1.26.0

require (
	github.com/VictoriaMetrics/metrics v1.45.0
	github.com/gomodule/redigo v1.9.3
	github.com/hanzoai/limiters v0.1.0
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.4
)

require (
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/valyala/fastrand v1.1.0 // indirect
	github.com/valyala/histogram v1.2.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/hanzoai/limiters => ../..
