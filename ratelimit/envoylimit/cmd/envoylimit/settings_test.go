package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Settings keep the original's defaults.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := readSettings(map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.config()
	if s.GrpcPort != 8081 || s.Port != 8080 || s.DebugPort != 6070 || s.folder().Path != "/srv/runtime_data/current/config" ||
		s.Redis.Type != "SINGLE" || cfg.NearLimitRatio != 0.8 || cfg.Headers != nil || s.GrpcMaxConnectionAge != 24*time.Hour {
		t.Errorf("got %+v", s)
	}
}

// What cannot be followed keeps it from starting, all at once; what means nothing is passed over, and
// told of.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ map[string]string
		want    []string
	}{
		"unsupported": {
			map[string]string{"CONFIG_TYPE": "GRPC_XDS_SOTW", "BACKEND_TYPE": "memcache", "REDIS_PERSECOND": "true", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION": "true"},
			[]string{
				"CONFIG_TYPE=GRPC_XDS_SOTW is not supported", "BACKEND_TYPE=memcache is not", "REDIS_PERSECOND=true is not",
				"REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true is not",
			},
		},
		"malformed": {
			map[string]string{"GRPC_PORT": "many", "SHADOW_MODE": "maybe", "LOG_LEVEL": "loud", "GRPC_SERVER_USE_TLS": "true"},
			[]string{"GrpcPort", "ShadowMode", `LOG_LEVEL="loud"`, "GRPC_SERVER_TLS_CERT"},
		},
		"fine": {map[string]string{"CONFIG_TYPE": "FILE", "BACKEND_TYPE": "redis", "REDIS_PERSECOND": "false"}, nil},
	} {
		_, err := readSettings(test.environ)
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want in it %s", name, err, want)
			}
		}
	}
	lines := passedOver(map[string]string{"REDIS_POOL_SIZE": "5", "USE_STATSD": "false", "LOCAL_CACHE_SIZE_IN_BYTES": "1000"})
	if len(lines) != 2 || !strings.Contains(strings.Join(lines, "\n"), "REDIS_POOL_SIZE is passed over: ") {
		t.Errorf("got %q", lines)
	}
}

// The ways to name a Redis.
func TestSingleRedis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ map[string]string
		want    string // a URL, or what the error holds
	}{
		"default":      {nil, "unix:///var/run/nutcracker/ratelimit.sock"},
		"tcp":          {map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379"}, "redis://redis:6379"},
		"TLS":          {map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379", "REDIS_TLS": "true"}, "rediss://redis:6379"},
		"password":     {map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379", "REDIS_AUTH": "p,@"}, "redis://:p%2C%40@redis:6379"},
		"user":         {map[string]string{"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": "redis:6379", "REDIS_AUTH": "u:p"}, "redis://u:p@redis:6379"},
		"URL":          {map[string]string{"REDIS_URL": "rediss://u:p@h:1/2"}, "rediss://u:p@h:1/2"},
		"wrong socket": {map[string]string{"REDIS_SOCKET_TYPE": "udp"}, `REDIS_SOCKET_TYPE="udp": want tcp or unix`},
		"unix and TLS": {map[string]string{"REDIS_TLS": "true"}, "REDIS_TLS=true needs REDIS_SOCKET_TYPE=tcp"},
	} {
		s, err := readSettings(test.environ)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.single()
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// -check needs no Redis: it reads the rules and says what they are, or what is wrong with them.
func TestCheckOnly(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "rules.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	write("domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: week, requests_per_unit: 3, window: sliding}")
	if err := run(t.Context(), map[string]string{}, folder, true, &out); err != nil || out.String() != "d.k: 3 per week-sliding\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	write("domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: fortnight}")
	if err := run(t.Context(), map[string]string{}, folder, true, io.Discard); err == nil || !strings.Contains(err.Error(), file+":4: descriptors[0].rate_limit.unit") {
		t.Errorf("got %v", err)
	}
}

// A bad configuration keeps it from starting.
func TestBadStart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ map[string]string
		want    string
	}{
		"no folder":    {map[string]string{"REDIS_URL": "memory://", "RUNTIME_ROOT": t.TempDir()}, "no such file or directory"},
		"Redis type":   {map[string]string{"REDIS_TYPE": "mesh"}, `REDIS_TYPE="mesh": want SINGLE, SENTINEL or CLUSTER`},
		"sentinels":    {map[string]string{"REDIS_TYPE": "sentinel", "REDIS_URL": "master"}, "the name of the master and the sentinels"},
		"a wrong URL":  {map[string]string{"REDIS_URL": "http://h"}, "REDIS_URLS"},
		"no authority": {map[string]string{"REDIS_TLS": "true", "REDIS_SOCKET_TYPE": "tcp", "REDIS_TLS_CACERT": "/nowhere"}, "REDIS_TLS_CACERT"},
	} {
		if err := run(t.Context(), test.environ, "", false, io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want in it %s", name, err, test.want)
		}
	}
}
