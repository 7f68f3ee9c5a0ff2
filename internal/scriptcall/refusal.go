package scriptcall

// This file says which error replies deny a request as a whole.
//
// Denied must be certain. The script sets the sequence key first, and after that
// it raises nothing; so an error that Redis itself words is of a request that had
// no effect. Any other text may be a proxy's that lost sight of one that had.

import (
	"strings"

	"github.com/hanzoai/limiters/ratelimit/store"
)

// A Refusal is an error reply of which it is certain that nothing was applied.
type Refusal struct {
	Cause string // one of the store's Cause constants
	Keep  bool   // the connection is as good as a new one would be
}

// refusals are the error codes of Redis and Valkey that deny a request as a whole.
var refusals = map[string]Refusal{
	"NOSCRIPT":   {store.CauseOther, true}, // to an EVAL: a proxy's
	"OOM":        {store.CauseOutOfMemory, true},
	"NOREPLICAS": {store.CauseNoReplicas, true},
	"MISCONF":    {store.CauseMisconf, true},
	"BUSY":       {store.CauseBusy, true},
	"NOPERM":     {store.CausePermission, true},
	"NOAUTH":     {store.CauseAuth, false},
	"WRONGPASS":  {store.CauseAuth, false},
	"DENIED":     {store.CauseAuth, false}, // protected mode
	"READONLY":   {store.CauseReadOnly, false},
	"LOADING":    {store.CauseLoading, false},
	"MASTERDOWN": {store.CauseMasterDown, false},

	"CLUSTERDOWN": {store.CauseCluster, false},
	"CROSSSLOT":   {store.CauseCluster, true},
	"MOVED":       {store.CauseCluster, false},
	"ASK":         {store.CauseCluster, false},
	"TRYAGAIN":    {store.CauseCluster, true},
	"REDIRECT":    {store.CauseCluster, false},
}

// phrases are refusals that carry no code of their own.
var phrases = []struct {
	prefix string
	Refusal
}{
	{"max number of clients", Refusal{store.CauseMaxClients, false}},
	{"Protocol error: unauthenticated", Refusal{store.CauseAuth, false}},
	{"The user executing the script can't", Refusal{store.CausePermission, true}}, // Redis 6.2
	{"unknown command `EVAL", Refusal{store.CauseOther, true}},
	{"unknown command 'EVAL", Refusal{store.CauseOther, true}},
}

// RefusalOf returns what kind of refusal the text of an error reply is, if it is a
// known one.
func RefusalOf(text string) (Refusal, bool) {
	text = strip(text)
	if r, ok := refusals[firstWord(text)]; ok {
		return r, true
	}
	for _, p := range phrases {
		if strings.HasPrefix(text, p.prefix) {
			return p.Refusal, true
		}
	}
	return Refusal{}, false
}

// IsNoScript reports that the text of an error reply says that the server does not
// know the script.
func IsNoScript(text string) bool { return firstWord(strip(text)) == "NOSCRIPT" }

// CauseOfReply names the text of an error reply by one of the store's causes.
func CauseOfReply(text string) string {
	if r, ok := RefusalOf(text); ok {
		return r.Cause
	}
	text = strip(text)
	if strings.HasPrefix(text, "invalid password") || strings.HasPrefix(text, "AUTH") {
		return store.CauseAuth
	}
	return store.CauseOther
}

// strip returns the text of an error reply without what Redis 6.2 and proxies put
// before it.
func strip(text string) string {
	text = strings.TrimPrefix(text, "ERR ")
	// Redis 6.2: "Error running script (call to f_<sha>): @user_script:48: @user_script: 48: -OOM …"
	if rest, ok := strings.CutPrefix(text, "Error running script (call to f_"); ok {
		if _, raised, ok := strings.Cut(rest, "): "); ok {
			text = raised
		}
	}
	for strings.HasPrefix(text, "@user_script:") {
		line, rest, _ := strings.Cut(strings.TrimPrefix(text, "@user_script:"), ": ")
		if strings.Trim(line, " 0123456789") != "" {
			break
		}
		text = rest
	}
	return strings.TrimPrefix(text, "-")
}

// firstWord is the text up to its first space.
func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}
