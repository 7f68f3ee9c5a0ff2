// Tests of masking: well-formed addresses stay readable, malformed ones give
// nothing away.

package redisurl

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                "",
		"memory://":                       "memory://",
		"redis://host":                    "redis://host",
		"redis://host:6379/3":             "redis://host:6379/3",
		"a_b.1-c=redis://10.0.0.1:6379/0": "a_b.1-c=redis://10.0.0.1:6379/0",
		"redis://[::1]:6379":              "redis://[::1]:6379",
		"redis://[fe80::1%eth0]":          "redis://[fe80::1%eth0]",
		"unix:///run/redis.sock":          "unix:///run/redis.sock",
		"localhost:6379":                  "localhost:6379",
		"redis://host:":                   "redis://host:",

		"redis://user:hunter2@host:6379/3":   "redis://***@host:6379/3",
		"rediss://:hunter2@host":             "rediss://***@host",
		"a=redis://hunter2@host":             "a=redis://***@host",
		"unix://user:hunter2@/run/r.sock":    "unix://***@/run/r.sock",
		"redis://user:hunter2@host:port":     "redis://***@host:port",
		"redis://host?password=hunter2":      "redis://host?***",
		"redis://host/1?db=2#hunter2":        "redis://host/1?***",
		"redis://host#hunter2":               "redis://host#***",
		"redis://u:hun/ter2@host":            "redis://***@host",
		"redis://u:hun?ter2@host":            "redis://***@host",
		"redis://u:hun#ter2@host":            "redis://***@host",
		"redis://u:hun@ter2@host":            "redis://***@host",
		"redis://u:hun ter2\n@host":          "redis://***@host",
		"redis://u:a://hunter2@host":         "redis://***@host",
		"redis:/u:hunter2@host":              "***@host",
		"redis:u:hunter2@host":               "***@host",
		"u:hunter2@host":                     "***@host",
		"hunter2=x@host":                     "***@host",
		"redis://u:hunter2":                  "redis://***",
		"redis://:hunter2":                   "redis://***",
		"redis://:12345":                     "redis://***",
		"redis://:hunter2%40host:6379":       "redis://***",
		"redis://hunter2%40host:6379":        "redis://***",
		"redis://user:hunter2/0":             "redis://***/0",
		"redis://[hunter2":                   "redis://***",
		"u:hunter2":                          "***",
		"hunter2 x://host":                   "***://host",
		"redis://u:hunter2%zz@host:6379/bad": "redis://***@host:6379/bad",
	} {
		if got := Mask(url); got != want {
			t.Errorf("Mask(%q) = %q, want %q", url, got, want)
		}
	}
}

// TestMaskListSplitPassword: a comma in a password splits a URL in two or more.
func TestMaskListSplitPassword(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"redis://a:1,redis://b:2":                                 "redis://a:1,redis://b:2",
		"redis://a:1,redis://u:12,34@b:2":                         "redis://a:1,redis://***,***@b:2",
		"redis://u:12,34,56@b:2,memory://":                        "redis://***,***,***@b:2,memory://",
		"redis://u:12/3,hunter2,56@b:2,redis://c,localhost:6379":  "redis://***,***,***@b:2,redis://c,localhost:6379",
		"x=redis://u:12,34@b:2,redis://u:5,6@c":                   "x=redis://***,***@b:2,redis://***,***@c",
		"redis://u:1@a,redis://u:2@b,3@c,unix:///r,redis://u:p@d": "redis://***@a,redis://***,***@c,unix:///r,redis://***@d",
	} {
		if diff := cmp.Diff(strings.Split(want, ","), MaskList(strings.Split(list, ","))); diff != "" {
			t.Errorf("MaskList(%q) (-want +got):\n%s", list, diff)
		}
	}
}

func TestMaskKeepsWhatHelps(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		"redis://h:6379/0":            "redis://h:6379/0",
		"a=redis://h:6379/":           "a=redis://h:6379/",
		"redis://u:p@h:6379/x":        "redis://***@h:6379/x",
		"redis://u:p":                 "redis://***",
		"localhost:6379":              "localhost:6379",
		"unix://u:p@/run/r.sock?db=2": "unix://***@/run/r.sock?db=2",
		"unix:///run/r.sock?x=2":      "unix:///run/r.sock?***",
		"memory://":                   "memory://",
	} {
		if got := Mask(element); got != want {
			t.Errorf("Mask(%q) = %q, want %q", element, got, want)
		}
	}
}

// TestMaskNoHost: without a host, a user and a password that begins with digits
// look like host and port.
func TestMaskNoHost(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		"redis://user:1/hunter2":  "redis://***",
		"redis://user:1?hunter2":  "redis://***?***",
		"redis://user:1#hunter2":  "redis://***#***",
		"redis://host:6379?db=1":  "redis://***?db=1",
		"redis://user/hunter2":    "redis://***",
		"redis://h:6379/0?hunter": "redis://***/0?***",
		"user:1/hunter2":          "***",
		"n=user:1":                "***",
		"unix://user:hunter2/r":   "unix://***",
		"n=unix:///r":             "n=unix:///r",
	} {
		if got := Mask(element); got != want {
			t.Errorf("Mask(%q) = %q, want %q", element, got, want)
		}
	}
}

// TestParseListSplitPassword: the errors of a list show no part of a password
// that a comma has split.
func TestParseListSplitPassword(t *testing.T) {
	t.Parallel()
	_, err := ParseList([]string{"redis://user:5150", "hunter2", "90210@h:6379"})
	if err == nil {
		t.Fatal("a split password is accepted")
	}
	for _, secret := range []string{"5150", "hunter2", "90210"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q:\n%v", secret, err)
		}
	}
}

// FuzzMask: what stands before the last @ is never shown, whatever else the
// URL holds.
func FuzzMask(f *testing.F) {
	f.Add("redis://", "user", ":", "host:6379/0")
	f.Add("a=redis://", "", "/?#", "[::1]:1")
	f.Add("", "://", "@", "")
	f.Fuzz(func(t *testing.T, head, user, password, host string) {
		const secret = "§secret§"
		for _, s := range []string{head, user, password} {
			if strings.Contains(s, "§") {
				t.Skip("holds the secret's mark")
			}
		}
		host = strings.ReplaceAll(host, "@", "")
		url := head + user + secret + password + "@" + host
		if got := Mask(url); strings.Contains(got, secret) {
			t.Errorf("Mask(%q) = %q", url, got)
		}
	})
}
