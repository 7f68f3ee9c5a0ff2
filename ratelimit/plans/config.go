package plans

// This file makes a limiter's configuration of a limit.

import (
	"regexp"
	"time"

	"github.com/hanzoai/limiters/ratelimit"
)

// config is the configuration of a limit over that of the program. What decides which
// counters are meant, name and window, is in the prefix: limits never share one. There is no colon
// in between, at which a prefix would extend that of a limiter of the program's own.
func (l *Limit) config(name string, base ratelimit.Config) ratelimit.Config {
	cfg := base
	cfg.GlobalThreshold, cfg.CustomKeys = l.Threshold, nil
	cfg.Window, cfg.WindowInterval = ratelimit.WindowSliding, time.Minute
	cfg.WindowCalendar, cfg.WindowZone = ratelimit.Calendar(l.Calendar), "UTC"
	if l.Calendar != "" {
		cfg.Window = ratelimit.WindowFixed
	}
	if l.Kind != "" {
		cfg.Window = ratelimit.WindowKind(l.Kind)
	}
	if l.Window != 0 {
		cfg.WindowInterval = l.Window
	}
	if l.Zone != "" {
		cfg.WindowZone = l.Zone
	}
	cfg.WindowStrict, cfg.BurstInterval, cfg.Inclusive = l.Strict, l.Burst, !l.Exclusive
	cfg.CountLimited, cfg.StrictFirstContact = l.CountLimited, l.StrictFirst
	cfg.DryRun = base.DryRun || l.DryRun
	cfg.Scope = base.Scope + "/" + name
	cfg.RedisKeyPrefix = base.RedisKeyPrefix + "/" + name + "/" + l.window()
	return cfg
}

// window is the window for people, and for the prefix: two that differ count apart.
func (l *Limit) window() string {
	switch {
	case l.Calendar != "" && l.Zone != "":
		return l.Calendar + "-" + l.Zone
	case l.Calendar != "":
		return l.Calendar
	}
	return short(max(l.Window, 0))
}

// short is a duration without zero minutes and seconds; none is a minute.
func short(d time.Duration) string {
	if d == 0 {
		d = time.Minute
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if n := len(text) - len(zero); n > 0 && text[n:] == zero {
			text = text[:n+1]
		}
	}
	return text
}

// ofField is what fields of a configuration are called in a file.
var ofField = map[string]string{
	"GlobalThreshold": ".threshold", "WindowInterval": ".window", "Window": ".kind", "WindowCalendar": ".calendar",
	"WindowZone": ".zone", "WindowStrict": ".strict", "BurstInterval": ".burst",
}

var (
	ofConfig = regexp.MustCompile(`(?s)^ratelimit: (\w+) \([A-Z0-9_]*\): (.*)$`)
	variable = regexp.MustCompile(` \([A-Z0-9_]+\)`)
)

// config checks what a limiter would refuse to be made of.
func (v *validator) config(name string, l Limit) {
	field := "limits." + name
	cfg := l.config(name, v.base)
	cfg.RedisURLs = []string{"memory://"} // those of the program are not the file's fault
	err := cfg.Validate()
	if err == nil {
		return
	}
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = joined.Unwrap()
	}
	for _, err := range errs {
		match := ofConfig.FindStringSubmatch(err.Error())
		if match == nil {
			v.fault(field, "%v", err)
			continue
		}
		at, text := ofField[match[1]], variable.ReplaceAllString(match[2], "")
		if at == "" {
			text = match[1] + ": " + text
		}
		v.fault(field+at, "%s", text)
	}
}
