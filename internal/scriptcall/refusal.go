package scriptcall

// This file says which error replies deny a request as a whole.
//
// Denied must be certain. The script sets the sequence key first, and after that
// it raises nothing; so an error that the server itself words is of a request that
// had no effect. Any other text may be a proxy's that lost sight of one that had.
//
// The wordings are those of Redis 6.2 to 8 and of Valkey 7.2 to 9.

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

// phrases are refusals that carry no code of their own, in lower case. The letters
// of a command are those in which it was sent.
var phrases = []struct {
	prefix string
	Refusal
}{
	{"max number of clients", Refusal{store.CauseMaxClients, false}},
	{"protocol error: unauthenticated", Refusal{store.CauseAuth, false}},
	{"acl failure in script: ", Refusal{store.CausePermission, true}},            // Redis 7.2, Valkey
	{"the user executing the script ", Refusal{store.CausePermission, true}},     // Redis 6.2, 7.0
	{"can not execute the command on a stale replica", masterDown},               // within a script
	{"script attempted to execute a ", Refusal{store.CauseCluster, false}},       // … while the cluster is down
	{"script attempted to access ", Refusal{store.CauseCluster, false}},          // a key of another node or slot
	{"can not run script on cluster", Refusal{store.CauseCluster, true}},         //
	{"unknown redis command called from ", Refusal{store.CauseOther, true}},      // SET or GET is renamed
	{"unknown command called from ", Refusal{store.CauseOther, true}},            // the same, Valkey
	{"this redis command is not allowed from ", Refusal{store.CauseOther, true}}, //
	{"this valkey command is not allowed from ", Refusal{store.CauseOther, true}},
	{"unknown command 'eval", Refusal{store.CauseOther, true}},
	{"unknown command `eval", Refusal{store.CauseOther, true}},
	{`unknown command "eval`, Refusal{store.CauseOther, true}},
	{"unknown command eval", Refusal{store.CauseOther, true}},
	{"unsupported command 'eval", Refusal{store.CauseOther, true}}, // Envoy
}

var masterDown = Refusal{store.CauseMasterDown, false}

// RefusalOf returns what kind of refusal the text of an error reply is, if it is a
// known one.
func RefusalOf(text string) (Refusal, bool) {
	text = strip(text)
	if r, ok := refusals[firstWord(text)]; ok {
		return r, true
	}
	for _, p := range phrases {
		if len(text) >= len(p.prefix) && strings.EqualFold(text[:len(p.prefix)], p.prefix) {
			return p.Refusal, true
		}
	}
	return Refusal{}, false
}

// IsNoScript reports that the text of an error reply says that the server does not
// know the script.
func IsNoScript(text string) bool { return firstWord(strip(text)) == "NOSCRIPT" }

// IsCluster reports that the text of an error reply is a cluster's, to a client that
// takes it for one server or keys for those of one slot.
func IsCluster(text string) bool {
	switch firstWord(strip(text)) {
	case "CROSSSLOT", "MOVED", "ASK":
		return true
	}
	return false
}

// mentions are the words by which texts that deny nothing for certain tell their
// cause, in lower case: of older servers and of proxies.
var mentions = []struct{ phrase, cause string }{
	{"invalid password", store.CauseAuth},
	{"sent auth", store.CauseAuth}, // Client sent AUTH, but no password is set
	{"called without any password", store.CauseAuth},
	{"authentication required", store.CauseAuth},
	{"auth failed", store.CauseAuth},
	{"unknown command 'auth", store.CauseAuth},
	{"unknown command `auth", store.CauseAuth},
	{"for 'auth'", store.CauseAuth}, // wrong number of arguments, before ACLs
	{"connection refused", store.CauseUnreachable},
	{"no route to host", store.CauseUnreachable},
	{"host is down", store.CauseUnreachable},
	{"no upstream host", store.CauseUnreachable},
	{"connection timed out", store.CauseTimeout},
	{"connection reset", store.CauseClosed},
	{"broken pipe", store.CauseClosed},
	{"command disabled", store.CausePermission},
	{"no permission", store.CausePermission},
}

// CauseOfReply names the text of an error reply by one of the store's causes. It
// takes a hint where [RefusalOf] wants certainty: a code anywhere in the text, as
// proxies quote it, names the cause, and the fate stays unknown.
func CauseOfReply(text string) string {
	if r, ok := RefusalOf(text); ok {
		return r.Cause
	}
	text = Shown(text) // what a server quotes is not its own word
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		if r, ok := refusals[word]; ok && r.Cause != store.CauseOther && word != "ASK" {
			return r.Cause
		}
	}
	text = strings.ToLower(text)
	for _, m := range mentions {
		if strings.Contains(text, m.phrase) {
			return m.cause
		}
	}
	return store.CauseOther
}

// strip returns the text of an error reply without what Redis 6.2 and proxies put
// before it.
func strip(text string) string {
	for before := ""; text != before; {
		before = text
		text = strings.TrimPrefix(text, "ERR ")
		text = strings.TrimPrefix(text, "(error) ") // as redis-cli prints an error
		text = strings.TrimPrefix(text, "-")
		// Redis 6.2: "Error running script (call to f_<sha>): @user_script:48: @user_script: 48: -OOM …"
		if call, ok := strings.CutPrefix(text, "Error running script (call to f_"); ok {
			if _, raised, ok := strings.Cut(call, "): "); ok {
				text = raised
			}
		}
		if place, ok := strings.CutPrefix(text, "@user_script:"); ok {
			line, raised, _ := strings.Cut(place, ": ")
			if strings.Trim(line, " 0123456789") == "" {
				text = raised
			}
		}
	}
	return text
}

// firstWord is the text up to its first space.
func firstWord(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}
