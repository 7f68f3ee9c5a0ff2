package grpcplans

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	echo "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/ratelimit/grpclimit"
	"github.com/hanzoai/limiters/ratelimit/plans"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

const file = `
limits:
  calls: {threshold: 2, window: 1h, kind: fixed}
  all: {threshold: 100, window: 1h, kind: fixed, key: everybody}
  odd: {threshold: 100, key: nobody}
  streams: {threshold: 1, window: 1h, kind: fixed}
plans: {pro: {calls: 5}}
keys: {ann: pro}
routes:
  - {pattern: POST /grpc.testing.TestService/EmptyCall, key: header:X-User, limits: [calls, all]}
  - {pattern: POST /grpc.testing.TestService/UnaryCall, key: header:X-User, limits: [calls], dry_run: true}
  - {pattern: POST /grpc.testing.TestService/StreamingOutputCall, key: user, cost: 1, limits: [streams]}
  - {pattern: POST /grpc.testing.TestService/FullDuplexCall, limits: [odd]}
allow: [{key: probe}]
block: [{key: thief}]
`

// A service answers.
type service struct {
	echo.UnimplementedTestServiceServer
}

func (service) EmptyCall(context.Context, *echo.Empty) (*echo.Empty, error) {
	return &echo.Empty{}, nil
}

func (service) UnaryCall(context.Context, *echo.SimpleRequest) (*echo.SimpleResponse, error) {
	return &echo.SimpleResponse{}, nil
}

func (service) StreamingOutputCall(_ *echo.StreamingOutputCallRequest, s grpc.ServerStreamingServer[echo.StreamingOutputCallResponse]) error {
	return s.Send(&echo.StreamingOutputCallResponse{})
}

func (service) FullDuplexCall(grpc.BidiStreamingServer[echo.StreamingOutputCallRequest, echo.StreamingOutputCallResponse]) error {
	return nil
}

// serve serves behind plans of the file and returns a client.
func serve(t *testing.T) (echo.TestServiceClient, *plans.Plans, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "plans.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := ratelimit.DefaultConfig()
	cfg.RedisURLs = []string{"memory://"}
	p, err := plans.Open(path, cfg, plans.WithClock(ratelimittest.NewClock()), plans.WithMetricsSet(metrics.NewSet()), plans.WithLogger(nil),
		plans.WithNames("user", "nobody"))
	if err != nil {
		t.Fatal(err)
	}
	i, err := New(p, map[string]grpclimit.KeyFunc{"user": grpclimit.Metadata("x-user")})
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(i.Unary), grpc.ChainStreamInterceptor(i.Stream))
	echo.RegisterTestServiceServer(server, service{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }() // ends with server.Stop
	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-served
		p.Close(context.Background())
	})
	return echo.NewTestServiceClient(conn), p, path
}

func as(t *testing.T, user string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "x-user", user)
}

func TestCallsPassTheirRoutes(t *testing.T) {
	client, p, path := serve(t)
	empty := func(user string, n int) (passed int) {
		for range n {
			var trailer metadata.MD
			switch _, err := client.EmptyCall(as(t, user), &echo.Empty{}, grpc.Trailer(&trailer)); status.Code(err) {
			case codes.OK:
				passed++
			case codes.ResourceExhausted:
				if !strings.Contains(err.Error(), "calls") || len(trailer.Get("grpc-retry-pushback-ms")) != 1 {
					t.Errorf("%v, trailers %v", err, trailer)
				}
			default:
				t.Error(err)
			}
		}
		return passed
	}
	for user, want := range map[string]int{"bob": 2, "ann": 5, "probe": 9} {
		if got := empty(user, 9); got != want {
			t.Errorf("%s: %d pass, want %d", user, got, want)
		}
	}
	if _, err := client.EmptyCall(as(t, "thief"), &echo.Empty{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a blocked key: %v", err)
	}
	if _, err := client.EmptyCall(t.Context(), &echo.Empty{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no key: %v", err)
	}
	for range 4 { // in a dry run
		if _, err := client.UnaryCall(as(t, "bob"), &echo.SimpleRequest{}); err != nil {
			t.Error(err)
		}
	}
	stream := func(user string) codes.Code {
		s, err := client.StreamingOutputCall(as(t, user), &echo.StreamingOutputCallRequest{})
		if err == nil {
			_, err = s.Recv()
		}
		return status.Code(err)
	}
	if a, b := stream("bob"), stream("bob"); a != codes.OK || b != codes.ResourceExhausted {
		t.Errorf("streams: %v, %v", a, b)
	}
	if s, err := client.FullDuplexCall(as(t, "bob")); err == nil {
		if _, err = s.Recv(); status.Code(err) != codes.Internal {
			t.Errorf("a key function that gRPC lacks: %v", err)
		}
	}
	if _, err := client.UnimplementedCall(as(t, "bob"), &echo.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("no route: %v", err)
	}

	if err := os.WriteFile(path, []byte(strings.Replace(file, "keys: {ann: pro}", "keys: {ann: pro, bob: pro}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := empty("bob", 9); got != 3 {
		t.Errorf("with another plan %d pass, want the 3 that are left", got)
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	if _, err := New(nil, nil); err == nil {
		t.Error("no plans are no error")
	}
	_, p, _ := serve(t)
	if _, err := New(p, map[string]grpclimit.KeyFunc{"x": nil}); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("a key function that is nil: %v", err)
	}
}
