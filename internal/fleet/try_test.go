package fleet

import (
	"strings"
	"testing"

	"oddsgraph/tests/tool"
)

// TestTry checks that Try finds a Redis that replicas cannot use, says why, and leaves nothing behind.
func TestTry(t *testing.T) {
	t.Parallel()
	server, gone := tool.StartRedis(t), tool.StartRedis(t)
	gone.Kill()
	server.CLI(t, "ACL", "SETUSER", "odds", "on", ">right-password", "~og:*", "+@read", "+@write", "+@connection", "+@scripting", "+time")
	server.CLI(t, "ACL", "SETUSER", "reader", "on", ">right-password", "~og:*", "+@read", "+@connection", "+@scripting", "+time")
	for url, want := range map[string]string{
		server.URL(): "",
		"unix://odds:right-password@" + server.Socket():   "",
		"unix://odds:wrong-password@" + server.Socket():   "Redis refused the user or the password",
		"unix://reader:right-password@" + server.Socket(): "the Redis user lacks a permission",
		gone.URL(): "no connection to Redis",
	} {
		took, err := Try(t.Context(), Config{URL: url, Venue: "https://venue.example"})
		if want == "" && (err != nil || took <= 0) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || (strings.Contains(err.Error(), "right-") || strings.Contains(err.Error(), "wrong-"))) {
			t.Errorf("%s: got %v and the error %v, want %q", url, took, err, want)
		}
	}
	eventually(t, "the record has expired", func() bool { return server.CLI(t, "KEYS", "*") == "" })
}
