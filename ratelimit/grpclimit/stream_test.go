package grpclimit

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	echo "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// converse opens a stream, sends up to n messages, each after the answer to the one
// before, and returns how many were answered and how the stream ended.
func converse(ctx context.Context, client echo.TestServiceClient, n int) (answered int, end codes.Code) {
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return 0, status.Code(err)
	}
	for range n {
		if err := stream.Send(&echo.StreamingOutputCallRequest{}); err != nil {
			break // Recv says why
		}
		if _, err := stream.Recv(); err != nil {
			return answered, status.Code(err)
		}
		answered++
	}
	stream.CloseSend()
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return answered, status.Code(err)
	}
	return answered, codes.OK
}

func TestAStreamCountsWhenItIsOpened(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	s := &service{}
	client := serve(t, newInterceptor(t, lim), s)
	for i := range 3 {
		if answered, end := converse(as(t, "ann"), client, 10); answered != 10 || end != ok {
			t.Errorf("stream %d: %d answers, then %v", i, answered, end)
		}
	}
	stream, err := client.FullDuplexCall(as(t, "ann"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	if status.Code(err) != exhausted || retryInfo(err) == nil {
		t.Errorf("the fourth stream: %v with details %v", err, status.Convert(err).Details())
	}
	if want := []string{"allowed", "allowed", "allowed"}; !slices.Equal(s.verdicts, want) {
		t.Errorf("the handler saw %v, want %v", s.verdicts, want)
	}
}

func TestAStreamOfAnswersCountsWhenItIsOpened(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	client := serve(t, newInterceptor(t, lim), &service{})
	var got []codes.Code
	for range 4 {
		stream, err := client.StreamingOutputCall(as(t, "ann"), &echo.StreamingOutputCallRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		if err == nil {
			if _, end := stream.Recv(); !errors.Is(end, io.EOF) {
				err = end
			}
		}
		got = append(got, status.Code(err))
	}
	if want := []codes.Code{ok, ok, ok, exhausted}; !slices.Equal(got, want) {
		t.Errorf("codes %v, want %v", got, want)
	}
}

func TestMessagesCountInsteadOfOpening(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	s := &service{}
	client := serve(t, newInterceptor(t, lim, WithMessages()), s)
	for i, row := range []struct {
		send, answered int
		end            codes.Code
	}{
		{0, 0, ok}, {2, 2, ok}, {0, 0, ok}, {3, 1, exhausted}, {1, 0, exhausted}, {0, 0, ok},
	} {
		if answered, end := converse(as(t, "ann"), client, row.send); answered != row.answered || end != row.end {
			t.Errorf("row %d: %d answers, then %v; want %d, %v", i, answered, end, row.answered, row.end)
		}
	}
	if s.messages != 3 || s.calls != 6 || s.verdicts[0] != "none" {
		t.Errorf("the handler saw %d messages of %d streams, decisions %v", s.messages, s.calls, s.verdicts)
	}
}

func TestMessagesAreAskedAboutOneByOne(t *testing.T) {
	t.Parallel()
	lim, _ := newLimiter(t, nil)
	var calls []Call
	client := serve(t, newInterceptor(t, lim, WithMessages(), WithCost(func(_ context.Context, c Call) uint64 {
		calls = append(calls, c)
		return 0
	})), &service{})
	if answered, end := converse(as(t, "ann"), client, 2); answered != 2 || end != ok {
		t.Errorf("%d answers, then %v", answered, end)
	}
	if len(calls) != 2 {
		t.Fatalf("asked about %d messages, want 2", len(calls))
	}
	for i, c := range calls {
		if _, isRequest := c.Message.(*echo.StreamingOutputCallRequest); !isRequest || c.Method != "/grpc.testing.TestService/FullDuplexCall" {
			t.Errorf("message %d: %T of %s", i, c.Message, c.Method)
		}
	}
}

func TestStreamsWithoutAKey(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]Option{nil, {WithMessages()}} {
		lim, _ := newLimiter(t, nil)
		client := serve(t, newInterceptor(t, lim, opts...), &service{})
		if answered, end := converse(t.Context(), client, 1); answered != 0 || end != invalid {
			t.Errorf("refused: %d answers, then %v", answered, end)
		}
		client = serve(t, newInterceptor(t, lim, append(opts, WithEmptyKeys(Pass))...), &service{})
		if answered, end := converse(t.Context(), client, 9); answered != 9 || end != ok {
			t.Errorf("passed: %d answers, then %v", answered, end)
		}
	}
}
