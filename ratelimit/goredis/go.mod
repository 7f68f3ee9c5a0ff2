// go-redis stays out of the library's go.mod: whoever needs neither Cluster nor
// Sentinel shall not have to download, audit and update it.
module github.com/hanzoai/limiters/ratelimit/goredis

go 1.26.0

require (
	github.com/VictoriaMetrics/metrics v1.45.0
	github.com/hanzoai/limiters v0.1.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/valyala/fastrand v1.1.0 // indirect
	github.com/valyala/histogram v1.2.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace github.com/hanzoai/limiters => ../..
