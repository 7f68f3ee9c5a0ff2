// Package faultproxy is a TCP proxy that stands between a limiter and its Redis
// and does wrong what a test tells it to, request by request.
//
// It reads whole commands and whole replies, so that a fault is at a known place:
// before the request, inside it, after it took effect but before its reply, inside
// the reply. With no hook it passes everything on.
//
//	p, err := faultproxy.Listen(server.Addr())
//	p.Handle(func(r faultproxy.Request) faultproxy.Action {
//		if r.Number == 7 {
//			return faultproxy.CutAfter
//		}
//		return faultproxy.Pass
//	})
//
// # Concurrency
//
// All methods may be called from any goroutine. A hook is called for one request
// at a time and may call every method but Handle, Settle and Close.
package faultproxy
