// gRPC stays out of the module of plans: whoever limits HTTP alone shall not have to
// download, audit and update it.
module github.com/hanzoai/limiters/ratelimit/plans/grpcplans

go 1.26.0

require (
	github.com/VictoriaMetrics/metrics v1.45.0
	github.com/hanzoai/limiters v0.1.0
	github.com/hanzoai/limiters/ratelimit/grpclimit v0.1.0
	github.com/hanzoai/limiters/ratelimit/plans v0.1.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/golang/groupcache v0.0.0-20241129210726-2c02b8208cf8 // indirect
	github.com/gomodule/redigo v1.9.3 // indirect
	github.com/valyala/fastrand v1.1.0 // indirect
	github.com/valyala/histogram v1.2.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/hanzoai/limiters => ../../..

replace github.com/hanzoai/limiters/ratelimit/grpclimit => ../../grpclimit

replace github.com/hanzoai/limiters/ratelimit/plans => ..
