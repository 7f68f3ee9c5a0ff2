package grpclimit_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/grpclimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

// Each API key may make three calls a minute. The client learns when to come back.
func ExampleNew() {
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 4 // limits from there on: three pass
	cfg.RedisURLs = []string{"memory://"}
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(ratelimittest.NewClock()))
	if err != nil {
		log.Fatal(err)
	}
	defer lim.Close(context.Background())

	limit, err := grpclimit.New(lim, grpclimit.Metadata("x-api-key"))
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(limit.Unary),
		grpc.ChainStreamInterceptor(limit.Stream),
	)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go server.Serve(listener)
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-api-key", "k1")
	for range 4 {
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		fmt.Println(status.Code(err))
		for _, detail := range status.Convert(err).Details() {
			if retry, ok := detail.(*errdetails.RetryInfo); ok {
				fmt.Println("come back in", retry.GetRetryDelay().AsDuration())
			}
		}
	}
	// Output:
	// OK
	// OK
	// OK
	// ResourceExhausted
	// come back in 1m0s
}
