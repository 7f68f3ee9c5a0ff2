package envoylimit

// This file answers requests.

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/hanzoai/limiters/ratelimit"
)

// What a request can be refused for, as a whole. Envoy treats each as a failed call.
var (
	errNoRules       = errors.New("no rate limit configuration loaded")
	errNoDomain      = errors.New("rate limit domain must not be empty")
	errNoDescriptors = errors.New("rate limit descriptor list must not be empty")
)

// A Service is an envoy.service.ratelimit.v3.RateLimitService. Make one with [New], give it
// rules, register it, and close it. All its methods may be called from any goroutine.
type Service struct {
	pb.UnimplementedRateLimitServiceServer
	cfg     Config // immutable
	set     *set
	rules   atomic.Pointer[Rules] // nil until there are any
	metrics *serviceMetrics

	loading   sync.Mutex
	loadedSum [sha256.Size]byte // guarded by loading; of the files that were loaded or tried last
}

// New returns a service without rules: until [Service.SetRules] it answers every request with an
// error. A Redis that cannot be reached is none. The error names the fields of cfg
// that are wrong.
func New(cfg Config) (*Service, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, metrics: newServiceMetrics()}
	options := append([]ratelimit.Option{ratelimit.WithClock(cfg.Clock), ratelimit.WithLogger(cfg.Logger)}, cfg.Options...)
	s.set = &set{cfg: cfg.Limiter, options: options}
	// What is wrong with the limiter's configuration is told now, not by the first request.
	if _, err := s.set.of(window{unit: pb.RateLimitResponse_RateLimit_MINUTE}); err != nil {
		return nil, err
	}
	return s, nil
}

// Register has server offer the service.
func (s *Service) Register(server grpc.ServiceRegistrar) {
	pb.RegisterRateLimitServiceServer(server, s)
}

// SetRules puts rules in place of those before. Counts stay: they belong to domain, descriptor
// and window, not to the limit. The error is that of a window whose limiter could not be
// made; the rules before then stay.
func (s *Service) SetRules(rules *Rules) error {
	for _, w := range rules.windows() {
		if _, err := s.set.of(w); err != nil {
			s.metrics.loadFailed.Inc()
			return err
		}
	}
	s.rules.Store(rules)
	s.metrics.loaded.Inc()
	return nil
}

// Rules returns those in force; nil if there are none yet.
func (s *Service) Rules() *Rules { return s.rules.Load() }

// Limiters returns the limiters that the service counts with, for a status page: one for each
// window in use, and that of the minute.
func (s *Service) Limiters() []*ratelimit.Limiter { return s.set.all() }

// WritePrometheus writes the metrics of the service, in the Prometheus text format. Those of its
// limiters come apart, as those of every limiter.
func (s *Service) WritePrometheus(w io.Writer) { s.metrics.set.WritePrometheus(w) }

// Close delivers what is counted and ends the service's limiters; ctx bounds how long it goes on
// trying. Requests that come later are decided by what is known here. The
// error joins those of the limiters (see ratelimit.CloseError).
func (s *Service) Close(ctx context.Context) error { return s.set.close(ctx) }

// ShouldRateLimit decides about a request: each descriptor counts by itself, and all are counted
// even if one is over its limit. The overall code is OVER_LIMIT if any status is. The
// error is that of a request that asks nothing, and of a limit of its own in an unknown unit.
func (s *Service) ShouldRateLimit(ctx context.Context, request *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	response, err := s.answer(ctx, request)
	if err != nil {
		s.metrics.refused.Inc()
	}
	return response, err
}

func (s *Service) answer(ctx context.Context, request *pb.RateLimitRequest) (*pb.RateLimitResponse, error) {
	rules := s.rules.Load()
	switch {
	case request.GetDomain() == "":
		return nil, errNoDomain
	case len(request.GetDescriptors()) == 0:
		return nil, errNoDescriptors
	case rules == nil:
		return nil, errNoRules
	}
	var few [4]question
	questions, err := s.questions(few[:0], rules, request)
	if err != nil {
		return nil, err
	}
	now := s.cfg.wall()
	if s.cfg.StopWhenOver {
		s.stopWhenOver(questions)
	}
	response := &pb.RateLimitResponse{
		OverallCode: pb.RateLimitResponse_OK,
		Statuses:    make([]*pb.RateLimitResponse_DescriptorStatus, len(questions)),
	}
	var summary summary
	for i := range questions {
		q := &questions[i]
		status := s.decide(ctx, q, now)
		response.Statuses[i] = s.conclude(&summary, i, q, status)
	}
	if summary.over {
		response.OverallCode = pb.RateLimitResponse_OVER_LIMIT
		if s.cfg.ShadowMode {
			response.OverallCode = pb.RateLimitResponse_OK
			s.metrics.shadowed.Inc()
		}
	}
	if s.cfg.Headers != nil && summary.closest != nil {
		response.ResponseHeadersToAdd = s.cfg.Headers.of(summary.closest, now)
	}
	if s.cfg.DynamicMetadata {
		response.DynamicMetadata = metadataOf(request, questions, summary.quotas)
	}
	return response, nil
}

// A question is one descriptor of a request.
type question struct {
	rule      *rule // nil: nothing to decide
	unlimited bool
	entity    string
	metric    string
	limiter   *ratelimit.Limiter
	hits      uint64 // what the descriptor asks for
	counted   uint64 // what is counted of it
}

// questions finds out what there is to decide.
func (s *Service) questions(all []question, rules *Rules, request *pb.RateLimitRequest) ([]question, error) {
	replaced := false
	for i, descriptor := range request.GetDescriptors() {
		m, known := rules.match(request.GetDomain(), descriptor)
		if !known {
			s.metrics.unknownDomain.Inc()
		}
		q := question{rule: m.rule, entity: m.entity, metric: m.metric, hits: hitsOf(request, descriptor)}
		q.counted = q.hits
		if m.rule != nil {
			replaced = replaced || len(m.rule.replaces) > 0
			q.unlimited = m.rule.unlimited
			if !q.unlimited && lengthOf(m.rule.limit.GetUnit()) == 0 {
				return nil, fmt.Errorf("rate limit descriptor %d has a limit of its own in the unknown unit %v", i, m.rule.limit.GetUnit())
			}
		}
		all = append(all, q)
	}
	if replaced {
		replace(all)
	}
	for i := range all {
		q := &all[i]
		if q.unlimited {
			q.rule = nil
		}
		if q.rule == nil {
			continue
		}
		var err error
		if q.limiter, err = s.set.of(q.rule.windowOf()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// replace takes out the rules that others in the request replace, by name. One that is replaced
// itself replaces all the same.
func replace(all []question) {
	replaced := map[string]bool{}
	for i := range all {
		if r := all[i].rule; r != nil {
			for _, name := range r.replaces {
				replaced[name] = true
			}
		}
	}
	for i := range all {
		if r := all[i].rule; r != nil && !r.unlimited && replaced[r.limit.GetName()] {
			all[i].rule = nil
		}
	}
}

// hitsOf is the descriptor's own number of hits, which may be 0, else the request's, which is 1
// if it is not said.
func hitsOf(request *pb.RateLimitRequest, d *ratelimitv3.RateLimitDescriptor) uint64 {
	if own := d.GetHitsAddend(); own != nil {
		return own.GetValue()
	}
	return max(1, uint64(request.GetHitsAddend()))
}

// stopWhenOver has those descriptors count nothing that fit, if another one does not.
func (s *Service) stopWhenOver(questions []question) {
	var few [8]bool
	over, any := few[:0], false
	for i := range questions {
		q := &questions[i]
		exceeds := false
		if q.rule != nil {
			requests := q.rule.limit.GetRequestsPerUnit()
			d := q.limiter.CheckThreshold(q.entity, 0, uint64(requests))
			exceeds = d.Level()+float64(q.hits) > float64(requests)
		}
		over, any = append(over, exceeds), any || exceeds
	}
	for i := range questions {
		if any && !over[i] {
			questions[i].counted = 0
		}
	}
}

// decide counts and answers one descriptor.
func (s *Service) decide(ctx context.Context, q *question, now int64) *pb.RateLimitResponse_DescriptorStatus {
	if q.rule == nil {
		return &pb.RateLimitResponse_DescriptorStatus{Code: pb.RateLimitResponse_OK}
	}
	requests := q.rule.limit.GetRequestsPerUnit()
	d := s.ask(ctx, q, uint64(requests))
	// A request of no units passes at a level of just the limit, where one of a unit would not.
	after := d.Level()
	over := after > float64(requests)
	s.metrics.count(q, after, over, s.cfg.NearLimitRatio)
	status := &pb.RateLimitResponse_DescriptorStatus{
		Code: pb.RateLimitResponse_OK, CurrentLimit: q.rule.limit, DurationUntilReset: untilReset(q.rule.limit.GetUnit(), now),
	}
	switch {
	case !over:
		status.LimitRemaining = uint32(float64(requests) - math.Ceil(after))
	case !q.rule.shadow:
		status.Code = pb.RateLimitResponse_OVER_LIMIT
	}
	return status
}

// ask has the limiter decide: by what this process knows, or by the fleet's counters if the rule says
// so. If the fleet cannot be asked, this process decides after all.
func (s *Service) ask(ctx context.Context, q *question, requests uint64) ratelimit.Decision {
	if !q.rule.fleet {
		return q.limiter.CheckThreshold(q.entity, q.counted, requests)
	}
	d, err := q.limiter.CheckFleetThreshold(ctx, q.entity, q.counted, requests)
	if err != nil {
		s.metrics.notFleet.Inc()
	}
	return d
}

// A summary is what the answers to a request's descriptors come to.
type summary struct {
	over    bool
	closest *pb.RateLimitResponse_DescriptorStatus // to its limit, or the last that is over it
	left    uint32                                 // of closest
	quotas  []int                                  // which were over in quota mode
}

// conclude adds one status to the summary, and returns it as it is to be shown.
func (s *Service) conclude(sum *summary, i int, q *question, status *pb.RateLimitResponse_DescriptorStatus) *pb.RateLimitResponse_DescriptorStatus {
	if status.CurrentLimit != nil && status.LimitRemaining < math.MaxUint32 && (sum.closest == nil || status.LimitRemaining < sum.left) {
		sum.closest, sum.left = status, status.LimitRemaining
	}
	if q.unlimited {
		return &pb.RateLimitResponse_DescriptorStatus{Code: pb.RateLimitResponse_OK, LimitRemaining: math.MaxUint32}
	}
	if status.Code != pb.RateLimitResponse_OVER_LIMIT {
		return status
	}
	if s.cfg.QuotaMode || q.rule.quota {
		sum.quotas = append(sum.quotas, i)
		return &pb.RateLimitResponse_DescriptorStatus{
			Code: pb.RateLimitResponse_OK, CurrentLimit: status.CurrentLimit, LimitRemaining: status.LimitRemaining,
		}
	}
	sum.over = true
	sum.closest, sum.left = status, 0
	return status
}
