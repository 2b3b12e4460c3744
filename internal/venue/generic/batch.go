package generic

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

const (
	// maxUnconfirmedIDs is the greatest number of ids in a list parameter that is not in the venue's documentation.
	maxUnconfirmedIDs = 50
	// maxParamName is the number of bytes that urlOverhead reserves for the name of a list parameter.
	maxParamName = 32
)

// urlLimit bounds the length of the URLs that the client sends to an endpoint. After the venue has refused a URL for its length,
// the field `bytes` contains the limit. The client forgets this limit at the time in the field `until`. urlLimit is safe for
// concurrent use.
type urlLimit struct {
	mu    sync.Mutex
	bytes int
	until time.Time
}

// get returns the configured limit in bytes. If the client still remembers a smaller limit from a refusal, get returns this smaller
// limit.
func (u *urlLimit) get(configured int, now time.Time) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now.Before(u.until) {
		return min(u.bytes, configured)
	}
	return configured
}

// shorten is called after the venue has refused a URL with ids. It lowers the limit, so that only about half of these ids fit into
// a URL.
func (u *urlLimit) shorten(c *Client, e upstream.Endpoint, ids []string) {
	now := c.Now()
	length := min(u.get(c.cfg.MaxURL, now), c.urlOverhead(e)+escapedBytes(ids)/2)
	u.mu.Lock()
	u.bytes, u.until = length, now.Add(relearnAfter)
	u.mu.Unlock()
	c.Log().Info("the venue refuses long lists: shorter ones are sent", "endpoint", e.String(), "bytes", length)
}

// urlOverhead returns the length in bytes of a URL without ids.
func (c *Client) urlOverhead(e upstream.Endpoint) int {
	return c.URLBytes(e) + len("?=") + maxParamName
}

// idBytes returns the number of bytes that ids and commas may use in the URL of one call.
func (c *Client) idBytes(e upstream.Endpoint) int {
	return c.urlLimits[e].get(c.cfg.MaxURL, c.Now()) - c.urlOverhead(e)
}

// maxListIDs returns the greatest number of ids in one list. learned is nil if the venue documents the list parameter.
func (c *Client) maxListIDs(learned *support) int {
	if learned != nil {
		return min(c.cfg.MaxIDs, maxUnconfirmedIDs)
	}
	return c.cfg.MaxIDs
}

// escapedBytes returns the length in bytes of the escaped ids in a URL, with a comma after each id.
func escapedBytes(ids []string) (n int) {
	for _, id := range ids {
		n += len(url.QueryEscape(id)) + 1
	}
	return n
}

// listCost returns the result of Client.Cost for an endpoint with a list parameter.
func (c *Client) listCost(e upstream.Endpoint, learned *support, keys, bytes int) int {
	if keys <= 0 || learned != nil && !learned.usable(c.Now()) {
		return max(keys, 0)
	}
	return min(max(rest.CeilDiv(keys, c.maxListIDs(learned)), rest.CeilDiv(bytes+keys, max(c.idBytes(e), 1))), keys)
}

// splitEnds splits keys into lists that each fit into one call. List i is keys[ends[i-1]:ends[i]], and the first list is
// keys[:ends[0]]. An id that is too long for a URL is a list of its own.
func (l *lookup[T]) splitEnds(c *Client, keys []string) (ends []int) {
	maxBytes, most, from, bytes := c.idBytes(l.endpoint), c.maxListIDs(l.support), 0, 0
	for i := range keys {
		more := escapedBytes(keys[i : i+1])
		if i > from && (i-from == most || bytes+more > maxBytes) {
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

func urlTooLong(err error) bool {
	c, ok := errors.AsType[*rest.CallFailure](err)
	return ok && (c.Status == http.StatusRequestURITooLong || c.Status == http.StatusRequestHeaderFieldsTooLarge)
}
