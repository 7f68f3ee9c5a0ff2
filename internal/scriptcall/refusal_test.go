// This file holds the words in which servers and proxies refuse, and what they tell.

package scriptcall

import (
	"strings"
	"testing"

	"github.com/hanzoai/limiters/ratelimit/store"
)

func TestEveryWordingOfARefusal(t *testing.T) {
	t.Parallel()
	const (
		redis62 = "ERR Error running script (call to f_0123456789abcdef0123456789abcdef01234567): @user_script:48: @user_script: 48: "
		redis7  = " script: 0123456789abcdef0123456789abcdef01234567, on @user_script:48."
	)
	for _, row := range []struct {
		text, cause string
		keep        bool
	}{
		// Permissions: of the request, and of a command within the script.
		{"NOPERM this user has no permissions to run the 'evalsha' command", store.CausePermission, true},                             // 7.0
		{"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand", store.CausePermission, true},           // 6.2
		{"NOPERM User bob has no permissions to run the 'eval' command", store.CausePermission, true},                                 // 7.2, Valkey
		{"NOPERM this user has no permissions to access one of the keys used as arguments", store.CausePermission, true},              //
		{"NOPERM No permissions to access a key", store.CausePermission, true},                                                        //
		{"NOPERM No permissions to access database", store.CausePermission, true},                                                     // Valkey 9
		{"ERR ACL failure in script: User default has no permissions to run the 'set' command" + redis7, store.CausePermission, true}, // 7.2, Valkey
		{"ERR ACL failure in script: No permissions to access a key" + redis7, store.CausePermission, true},
		{"ERR The user executing the script can't run this command or subcommand" + redis7, store.CausePermission, true}, // 7.0
		{redis62 + "The user executing the script can't access at least one of the keys mentioned in the command arguments", store.CausePermission, true},
		{redis62 + "The user executing the script is lacking the permissions for the command", store.CausePermission, true},
		// A server that does not write.
		{"READONLY You can't write against a read only replica." + redis7, store.CauseReadOnly, false},
		{"READONLY You can't write against a read only slave.", store.CauseReadOnly, false},
		{"-READONLY You can't write against a read only replica.", store.CauseReadOnly, false},
		{"ERR READONLY You can't write against a read only replica.", store.CauseReadOnly, false},
		{"(error) READONLY You can't write against a read only replica.", store.CauseReadOnly, false},
		{"ERR (error) LOADING Redis is loading the dataset in memory", store.CauseLoading, false},
		{redis62 + "-READONLY You can't write against a read only replica.", store.CauseReadOnly, false},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", store.CauseMasterDown, false},
		{"ERR Can not execute the command on a stale replica" + redis7, store.CauseMasterDown, false},
		{"LOADING Valkey is loading the dataset in memory", store.CauseLoading, false},
		{"OOM command not allowed when used memory > 'maxmemory'." + redis7, store.CauseOutOfMemory, true},
		{"NOREPLICAS Not enough good replicas to write." + redis7, store.CauseNoReplicas, true},
		{"MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk.", store.CauseMisconf, true},
		{"BUSY Valkey is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", store.CauseBusy, true},
		{"BUSY Redis is busy running a module command.", store.CauseBusy, true},
		// Connections.
		{"NOAUTH Authentication required.", store.CauseAuth, false},
		{"NOAUTH HELLO must be called with the client already authenticated", store.CauseAuth, false},
		{"WRONGPASS invalid username-password pair or user is disabled.", store.CauseAuth, false},
		{"DENIED Valkey is running in protected mode because protected mode is enabled", store.CauseAuth, false},
		{"ERR max number of clients reached", store.CauseMaxClients, false},
		{"ERR max number of clients + cluster connections reached", store.CauseMaxClients, false},
		{"ERR Protocol error: unauthenticated bulk length", store.CauseAuth, false},
		// Clusters.
		{"CLUSTERDOWN The cluster is down and only accepts read commands", store.CauseCluster, false},
		{"ERR Script attempted to execute a write command while the cluster is down and readonly" + redis7, store.CauseCluster, false},
		{"ERR Script attempted to access a non local key in a cluster node" + redis7, store.CauseCluster, false},
		{"ERR Script attempted to access a slot not served" + redis7, store.CauseCluster, false},
		{"ERR Can not run script on cluster, 'no-cluster' flag is set.", store.CauseCluster, true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", store.CauseCluster, true},
		{"REDIRECT 10.0.0.1:6379", store.CauseCluster, false},
		// Commands that are renamed, disabled, or unknown to a proxy.
		{"ERR unknown command 'EVALSHA', with args beginning with: 'x' ", store.CauseOther, true},
		{"ERR unknown command 'evalsha', with args beginning with: 'x' ", store.CauseOther, true},
		{"ERR unknown command `evalsha`, with args beginning with: `x`, ", store.CauseOther, true},
		{"unsupported command 'evalsha'", store.CauseOther, true},
		{"ERR Unknown Redis command called from script" + redis7, store.CauseOther, true},
		{redis62 + "Unknown Redis command called from Lua script", store.CauseOther, true},
		{"ERR Unknown command called from script" + redis7, store.CauseOther, true},
		{"ERR This Redis command is not allowed from script" + redis7, store.CauseOther, true},
	} {
		got, ok := RefusalOf(row.text)
		if !ok || got != (Refusal{row.cause, row.keep}) {
			t.Errorf("RefusalOf(%q) = %+v, %v, want %s, %v", row.text, got, ok, row.cause, row.keep)
		}
		if cause := CauseOfReply(row.text); cause != row.cause {
			t.Errorf("CauseOfReply(%q) = %s, want %s", row.text, cause, row.cause)
		}
	}
}

// What a proxy words itself names its cause where it can, and denies nothing.
func TestOtherWordsTellACauseAndNoFate(t *testing.T) {
	t.Parallel()
	for text, cause := range map[string]string{
		"ERR upstream: READONLY You can't write against a read only replica": store.CauseReadOnly,
		"proxy error (LOADING): try later":                                   store.CauseLoading,
		"ERR backend said -OOM command not allowed":                          store.CauseOutOfMemory,
		"ERR Connection refused":                                             store.CauseUnreachable,
		"ERR Connection timed out":                                           store.CauseTimeout,
		"ERR Connection reset by peer":                                       store.CauseClosed,
		"ERR Client sent AUTH, but no password is set":                       store.CauseAuth,
		"ERR invalid password":                                               store.CauseAuth,
		"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?": store.CauseAuth,
		"ERR wrong number of arguments for 'auth' command": store.CauseAuth,
		"no upstream host":                            store.CauseUnreachable,
		"ERR upstream timeout":                        store.CauseOther,
		"ERR value is not an integer or out of range": store.CauseOther,
		"OOMPH":                      store.CauseOther,
		"ERR bad key 'x READONLY y'": store.CauseOther, // what it quotes is not its own
		"ERR asked for BUSYKEY, which is no refusal": store.CauseOther,
		"":                                     store.CauseOther,
		"ERR ":                                 store.CauseOther,
		"ERR ERR -":                            store.CauseOther,
		"@user_script:":                        store.CauseOther,
		"ERR Error running script (call to f_": store.CauseOther,
		strings.Repeat("ERR ", 10_000):         store.CauseOther,
		"ERR Error running script (call to f_x): attempt to index a nil value": store.CauseOther,
	} {
		if r, ok := RefusalOf(text); ok {
			t.Errorf("%.60q is taken for a certain refusal: %+v", text, r)
		}
		if got := CauseOfReply(text); got != cause {
			t.Errorf("CauseOfReply(%.60q) = %s, want %s", text, got, cause)
		}
	}
}

func TestNothingThatAServerQuotesIsShown(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-team_42"
	for text, want := range map[string]string{
		"ERR unknown command 'AUTH', with args beginning with: '" + secret + "' ":  "ERR unknown command 'AUTH', with args beginning with: ***",
		"ERR unknown command `evalsha`, with args beginning with: `x`, `" + secret: "ERR unknown command `evalsha`, with args beginning with: ***",
		"ERR unknown command '" + secret + "'":                                     "ERR unknown command '***'",
		`ERR bad "` + secret + `" and more`:                                        `ERR bad "***" and more`,
		"NOPERM User bob has no permissions to access the '" + secret + "' key":    "NOPERM User bob has no permissions to access the '***' key",
		"ERR unterminated '" + secret:                                              "ERR unterminated '***",
		"ERR nested 'a'" + secret + "'b' end":                                      "ERR nested '***' end",
		"ERR unquoted " + secret + " there":                                        "ERR unquoted *** there",
		"ERR unknown subcommand '" + secret + "'. Try SCRIPT HELP.":                "ERR unknown subcommand '***'. Try SCRIPT HELP.",
		"READONLY You can't write against a read only replica.":                    "READONLY You can't write against a read only replica.",
		"OOM command not allowed when used memory > 'maxmemory'.":                  "OOM command not allowed when used memory > 'maxmemory'.",
		"NOPERM this user has no permissions to run the 'script|load' command":     "NOPERM this user has no permissions to run the 'script|load' command",
		"CROSSSLOT Keys in request don't hash to the same slot, '" + secret + "'":  "CROSSSLOT Keys in request don't hash to the same slot, '***'",
		"ERR 'get' and '" + secret + "'":                                           "ERR 'get' and '***'",
		"ERR two\nlines\x1b[31m":                                                   "ERR two?lines?[31m",
		"ERR \xff":                                                                 "ERR ?",
		"ERR " + strings.Repeat("é", 400):                                          "ERR " + strings.Repeat("é", 148) + "…",
		"":                                                                         "",
	} {
		got := Shown(text, secret, "x")
		if got != want {
			t.Errorf("Shown(%q) = %q, want %q", text, got, want)
		}
		if strings.Contains(got, "hunter2") || strings.Contains(got, "team_42") {
			t.Errorf("Shown(%q) shows a secret: %q", text, got)
		}
	}
}

// FuzzShown looks for a text within quotes that shows.
func FuzzShown(f *testing.F) {
	f.Add("ERR unknown command 'AUTH', with args beginning with: ", " ")
	f.Add("a\"", "'`")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "s3cr3t"
		if strings.Contains(before+after, secret) {
			return
		}
		for _, quote := range []string{"'", `"`, "`"} {
			if got := Shown(before + " " + quote + secret + quote + after); strings.Contains(got, secret) {
				t.Errorf("%q shows", got)
			}
			_, _ = RefusalOf(before + after)
		}
	})
}
