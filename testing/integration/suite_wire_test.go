// This file reads what a server says about the commands it got.

package integration

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// monitored returns the client and the command of a line such as
//
//	1339518083.107412 [0 127.0.0.1:60866] "keys" "*"
//
// The client of a command that a script runs is lua.
func monitored(line string) (client, command string) {
	_, line, _ = strings.Cut(line, " [")
	client, line, _ = strings.Cut(line, "] ")
	_, client, _ = strings.Cut(client, " ")
	command, _, _ = strings.Cut(line, " ")
	return client, strings.ToLower(strings.Trim(command, `"`))
}

var evalshaLine = regexp.MustCompile(`(?m)^cmdstat_evalsha:calls=([0-9]+),`)

// evalshaCalls is how many EVALSHA a server has executed since its start.
func evalshaCalls(t *testing.T, conn redis.Conn) int {
	t.Helper()
	info, err := redis.String(conn.Do("INFO", "commandstats"))
	if err != nil {
		t.Fatal(err)
	}
	match := evalshaLine.FindStringSubmatch(info)
	if match == nil {
		return 0
	}
	n, _ := strconv.Atoi(match[1])
	return n
}
