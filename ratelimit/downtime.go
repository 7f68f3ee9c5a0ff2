package ratelimit

// This file remembers why a partition does not answer, and since when.

import (
	"time"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A downtime is the failed attempts in a row. Zero: the last one was answered, or there
// was none.
type downtime struct {
	since       int64 // wall; when the first of them ended
	step, cause string
	text        string // of the last one
}

// observe notes how an attempt ended at a time. One that its caller's context ended tells
// nothing.
func (d *downtime) observe(err error, wall int64) {
	if err == nil {
		*d = downtime{}
		return
	}
	failure := asStoreError(err)
	if failure.Cause == store.CauseCanceled {
		return
	}
	if d.since == 0 {
		d.since = wall
	}
	d.step, d.cause, d.text = failure.Step, failure.Cause, cause(failure)
}

// cause is the text of a failure.
func cause(failure *store.Error) string {
	if failure.Err == nil {
		return ""
	}
	return failure.Err.Error()
}

// A Failure is why a partition's attempts fail.
type Failure struct {
	Since time.Time // of the first failed attempt in a row
	Step  string    // where the last one ended, as metrics say it
	Cause string    // why, as metrics say it
	Text  string    // of its error; it is safe to show
}

// failure returns the failure, nil if there is none.
func (d *downtime) failure() *Failure {
	if d.since == 0 {
		return nil
	}
	return &Failure{Since: time.Unix(0, d.since).UTC(), Step: d.step, Cause: d.cause, Text: d.text}
}
