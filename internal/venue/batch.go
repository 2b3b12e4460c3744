package venue

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"oddsgraph/internal/market/reqctx"
)

const (
	// maxListed is the greatest number of ids in a list whose parameter is not in the venue's own description.
	maxListed = 50
	// longestName is the room that a URL leaves for the name of a list parameter.
	longestName = 32
)

// urlLength is the greatest length of a URL that the venue takes at an endpoint, where it refused longer ones lately. It is safe for
// concurrent use.
type urlLength struct {
	mu     sync.Mutex
	length int
	until  time.Time
}

// of returns the length, or the configured one where nothing else is known.
func (u *urlLength) of(configured int, now time.Time) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.until) {
		return min(u.length, configured)
	}
	return configured
}

// shorten notes that a list whose ids have so many bytes was too long.
func (u *urlLength) shorten(c *Client, e reqctx.Endpoint, ids []string) {
	now := c.clock.Now()
	length := min(u.of(c.maxURL, now), c.overhead(e)+bytesOf(ids)/2)
	u.mu.Lock()
	u.length, u.until = length, now.Add(relearn)
	u.mu.Unlock()
	c.log.Info("the venue refuses long lists and is asked in shorter ones", "endpoint", e.String(), "bytes", length)
}

// overhead is the length of a URL without the ids in it.
func (c *Client) overhead(e reqctx.Endpoint) int {
	return len(c.base.Scheme) + len("://") + len(c.base.Host) + len(c.base.Path) + len(paths[e]) + len("?=") + longestName
}

// room is the number of bytes that ids may take in one call, with the commas between them.
func (c *Client) room(e reqctx.Endpoint) int {
	return c.lengths[e].of(c.maxURL, c.clock.Now()) - c.overhead(e)
}

// most is the greatest number of ids in one list.
func (c *Client) most(learned *capability) int {
	if learned != nil {
		return min(c.maxIDs, maxListed)
	}
	return c.maxIDs
}

// bytesOf returns how many bytes ids take in a URL, each with a comma.
func bytesOf(ids []string) (n int) {
	for _, id := range ids {
		n += len(url.QueryEscape(id)) + 1
	}
	return n
}

// listCost is Cost for an endpoint that may take lists.
func (c *Client) listCost(e reqctx.Endpoint, learned *capability, keys, bytes int) int {
	if keys <= 0 || learned != nil && !learned.lists(c.clock.Now()) {
		return max(keys, 0)
	}
	return min(max(ceil(keys, c.most(learned)), ceil(bytes+keys, max(c.room(e), 1))), keys)
}

// pieces returns where lists end that are as long as a call takes.
func (l *lookup[T]) pieces(c *Client, keys []string) (ends []int) {
	room, most, from, bytes := c.room(l.endpoint), c.most(l.learned), 0, 0
	for i := range keys {
		more := bytesOf(keys[i : i+1])
		if i > from && (i-from == most || bytes+more > room) {
			ends = append(ends, i)
			from, bytes = i, 0
		}
		bytes += more
	}
	if len(keys) > 0 {
		ends = append(ends, len(keys))
	}
	return ends
}

// tooLong reports whether the venue says that a URL was too long.
func tooLong(err error) bool {
	var c *cause
	return errors.As(err, &c) && (c.status == http.StatusRequestURITooLong || c.status == http.StatusRequestHeaderFieldsTooLarge)
}
