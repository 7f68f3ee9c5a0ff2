package grpclimit

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hanzoai/limiters/ratelimit/httplimit"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		values []string
		want   string
		code   codes.Code
	}{
		{nil, "", ok},
		{[]string{""}, "", ok},
		{[]string{" ann "}, "ann", ok},
		{[]string{"ann", "bob"}, "", invalid},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"x-user": row.values})
		got, err := Metadata("X-User")(ctx, Call{})
		if got != row.want || status.Code(err) != row.code {
			t.Errorf("Metadata of %q: %q, %v; want %q, %v", row.values, got, err, row.want, row.code)
		}
	}
	if got, err := Metadata("x-user")(t.Context(), Call{}); got != "" || err != nil {
		t.Errorf("Metadata without metadata: %q, %v", got, err)
	}
}

func TestPrefixed(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, row := range []struct {
		key  string
		err  error
		want string
	}{
		{"ann", nil, "user:ann"}, {"", nil, ""}, {"ann", broken, ""},
	} {
		got, err := Prefixed("user:", func(context.Context, Call) (string, error) { return row.key, row.err })(t.Context(), Call{})
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("Prefixed of %q, %v: %q, %v; want %q", row.key, row.err, got, err, row.want)
		}
	}
}

func TestClientIP(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		p    httplimit.Proxies
		peer net.Addr
		md   metadata.MD
		want string
		err  error
	}{
		{httplimit.Proxies{}, &net.TCPAddr{IP: net.ParseIP("203.0.113.7"), Port: 1}, nil, "203.0.113.7", nil},
		{httplimit.Proxies{}, &net.TCPAddr{IP: net.ParseIP("2001:db8:1:2::3"), Port: 1}, nil, "2001:db8:1:2::/64", nil},
		{httplimit.Proxies{}, nil, nil, "", httplimit.ErrPeer},
		{
			httplimit.Proxies{Trusted: []string{"10.0.0.1"}},
			&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 1},
			metadata.MD{"x-forwarded-for": {"1.1.1.1, 203.0.113.7"}, "forwarded": {"for=2.2.2.2"}},
			"203.0.113.7", nil,
		},
		{
			httplimit.Proxies{Trusted: []string{"10.0.0.1"}, Forwarding: httplimit.Forwarded},
			&net.TCPAddr{IP: net.ParseIP("10.0.0.1"), Port: 1},
			metadata.MD{"x-forwarded-for": {"1.1.1.1"}, "forwarded": {"for=2.2.2.2, for=203.0.113.7"}},
			"203.0.113.7", nil,
		},
		{
			httplimit.Proxies{Trusted: []string{"unix"}},
			&net.UnixAddr{Net: "unix", Name: "@"},
			metadata.MD{"x-forwarded-for": {"unknown"}},
			"", httplimit.ErrForwarding,
		},
	} {
		key, err := ClientIP(row.p)
		if err != nil {
			t.Fatal(err)
		}
		ctx := metadata.NewIncomingContext(t.Context(), row.md)
		if row.peer != nil {
			ctx = peer.NewContext(ctx, &peer.Peer{Addr: row.peer})
		}
		got, err := key(ctx, Call{})
		if got != row.want || !errors.Is(err, row.err) {
			t.Errorf("peer %v, metadata %v: %q, %v; want %q, %v", row.peer, row.md, got, err, row.want, row.err)
		}
	}
	if _, err := ClientIP(httplimit.Proxies{Trusted: []string{"everybody"}}); err == nil {
		t.Error("ClientIP trusts everybody")
	}
}

// Over real sockets: behind a proxy on the loopback interface, and on a unix socket.
func TestClientIPOverSockets(t *testing.T) {
	t.Parallel()
	key, err := ClientIP(httplimit.Proxies{Trusted: []string{"127.0.0.1", "unix"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range []string{"tcp", "unix"} {
		address, scheme := "127.0.0.1:0", "passthrough:///"
		if network == "unix" {
			address, scheme = filepath.Join(t.TempDir(), "s"), "unix:"
		}
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		lim, _ := newLimiter(t, nil)
		i, err := New(lim, key)
		if err != nil {
			t.Fatal(err)
		}
		client := serveOn(t, i, &service{}, l, scheme+l.Addr().String())
		var got []codes.Code
		for _, forwarded := range []string{"1.1.1.1, 203.0.113.7", "203.0.113.7:9", "203.0.113.7", "2.2.2.2,203.0.113.7", "203.0.113.8", "hidden"} {
			got = append(got, codesOf(metadata.AppendToOutgoingContext(t.Context(), "x-forwarded-for", forwarded), client, 1)...)
		}
		if want := []codes.Code{ok, ok, ok, exhausted, ok, invalid}; !slices.Equal(got, want) {
			t.Errorf("%s: codes %v, want %v", network, got, want)
		}
	}
}
