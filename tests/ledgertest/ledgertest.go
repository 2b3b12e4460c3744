// Package ledgertest prepares the call ledger for tests and benchmarks: the record in Redis of the calls that replicas make to a
// venue.
package ledgertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Open creates the ledger of a venue as if the Redis server had kept it for a long time, so that the ledger grants calls at once.
// The function cli must run a Redis command and return the reply in the format of redis-cli --raw.
func Open(venue string, cli func(args ...string) (string, error)) error {
	info, err := cli("INFO", "server")
	if err != nil {
		return fmt.Errorf("reading the run id of Redis: %w", err)
	}
	_, id, _ := strings.Cut(info, "run_id:")
	id, _, _ = strings.Cut(id, "\r")
	hash := sha256.Sum256([]byte(venue))
	out, err := cli("ZADD", "og:"+hex.EncodeToString(hash[:8])+":window:public", "-1", "run "+id, "-1", "born")
	if err != nil || out != "2" {
		return fmt.Errorf("the ledger of %s cannot be made: %s: %w", venue, out, err)
	}
	return nil
}
