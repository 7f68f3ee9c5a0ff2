package envoylimit

// This file is the dynamic metadata of an answer: the request, and what quota mode found.

import (
	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

func metadataOf(request *pb.RateLimitRequest, questions []question, quotas []int) *structpb.Struct {
	descriptors := &structpb.ListValue{}
	for _, d := range request.GetDescriptors() {
		entries := &structpb.ListValue{}
		for _, entry := range d.GetEntries() {
			entries.Values = append(entries.Values, structpb.NewStringValue(entry.GetKey()+"="+entry.GetValue()))
		}
		fields := map[string]*structpb.Value{"entries": structpb.NewListValue(entries)}
		if own := d.GetLimit(); own != nil {
			fields["limit"] = structpb.NewStringValue(own.String())
		}
		if hits := d.GetHitsAddend(); hits != nil {
			fields["hitsAddend"] = structpb.NewNumberValue(float64(hits.GetValue()))
		}
		descriptors.Values = append(descriptors.Values, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
	}
	quotaMode := false
	for i := range questions {
		quotaMode = quotaMode || questions[i].rule != nil && questions[i].rule.quota
	}
	fields := map[string]*structpb.Value{
		"domain": structpb.NewStringValue(request.GetDomain()), "descriptors": structpb.NewListValue(descriptors),
		"quotaModeEnabled": structpb.NewBoolValue(quotaMode),
	}
	if hits := request.GetHitsAddend(); hits != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(hits))
	}
	if len(quotas) > 0 {
		violations := &structpb.ListValue{}
		for _, i := range quotas {
			violations.Values = append(violations.Values, structpb.NewNumberValue(float64(i)))
		}
		fields["quotaModeViolations"] = structpb.NewListValue(violations)
	}
	return &structpb.Struct{Fields: fields}
}
