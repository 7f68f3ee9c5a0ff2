package grpclimit

// This file is what the tests share: a limiter on a fake clock, and a server with
// a client, connected over memory or over the loopback interface.

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	echo "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/VictoriaMetrics/metrics"

	"github.com/hanzoai/limiters/ratelimit"
	"github.com/hanzoai/limiters/testing/ratelimittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newLimiter returns a limiter of 4 units (so that three single ones pass) per
// minute. change may alter its configuration.
func newLimiter(t *testing.T, change func(*ratelimit.Config)) (*ratelimit.Limiter, *ratelimittest.Clock) {
	t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.GlobalThreshold = 4
	cfg.RedisURLs = []string{"memory://"}
	if change != nil {
		change(&cfg)
	}
	c := ratelimittest.NewClock()
	lim, err := ratelimit.New(cfg, ratelimit.WithClock(c), ratelimit.WithMetricsSet(metrics.NewSet()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lim.Close(context.Background()) })
	return lim, c
}

// A service answers, and says what it saw.
type service struct {
	echo.UnimplementedTestServiceServer
	calls    int
	messages int
	verdicts []string
}

func (s *service) saw(ctx context.Context) {
	s.calls++
	verdict := "none"
	if d, ok := Decision(ctx); ok {
		verdict = d.Verdict().String()
	}
	s.verdicts = append(s.verdicts, verdict)
}

func (s *service) EmptyCall(ctx context.Context, _ *echo.Empty) (*echo.Empty, error) {
	s.saw(ctx)
	return &echo.Empty{}, nil
}

func (s *service) UnaryCall(ctx context.Context, r *echo.SimpleRequest) (*echo.SimpleResponse, error) {
	s.saw(ctx)
	return &echo.SimpleResponse{Payload: r.GetPayload()}, nil
}

func (s *service) StreamingOutputCall(_ *echo.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[echo.StreamingOutputCallResponse]) error {
	s.saw(stream.Context())
	return stream.Send(&echo.StreamingOutputCallResponse{})
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[echo.StreamingOutputCallRequest, echo.StreamingOutputCallResponse]) error {
	s.saw(stream.Context())
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		s.messages++
		if err := stream.Send(&echo.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// newInterceptor returns an interceptor that counts by the metadata x-user.
func newInterceptor(t *testing.T, lim *ratelimit.Limiter, opts ...Option) *Interceptor {
	t.Helper()
	i, err := New(lim, Metadata("x-user"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve serves s behind the interceptor over memory and returns a client.
func serve(t *testing.T, i *Interceptor, s *service, opts ...grpc.DialOption) echo.TestServiceClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	return serveOn(t, i, s, listener, "passthrough:///memory",
		append(opts, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
}

func serveOn(t *testing.T, i *Interceptor, s *service, l net.Listener, target string, opts ...grpc.DialOption) echo.TestServiceClient {
	t.Helper()
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(i.Unary), grpc.ChainStreamInterceptor(i.Stream))
	echo.RegisterTestServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }() // ends with server.Stop
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return echo.NewTestServiceClient(conn)
}

// as is the context of a user's call.
func as(t *testing.T, user string) context.Context {
	return metadata.AppendToOutgoingContext(t.Context(), "x-user", user)
}

// codesOf makes n calls and returns their codes.
func codesOf(ctx context.Context, client echo.TestServiceClient, n int) (got []codes.Code) {
	for range n {
		_, err := client.EmptyCall(ctx, &echo.Empty{})
		got = append(got, status.Code(err))
	}
	return got
}

// retryInfo returns the RetryInfo of a status, nil if it has none.
func retryInfo(err error) (info *errdetails.RetryInfo) {
	for _, detail := range status.Convert(err).Details() {
		if i, ok := detail.(*errdetails.RetryInfo); ok {
			info = i
		}
	}
	return info
}
