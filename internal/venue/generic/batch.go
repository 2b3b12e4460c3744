package generic

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

const (
	// maxDetailIDs is the greatest number of ids in a list parameter that is not in the venue's documentation.
	maxDetailIDs = 50
	// maxParamName is the number of bytes that urlOverhead reserves for the name of a list parameter.
	maxParamName = 32
)

// urlOverhead returns the length in bytes of a URL without ids.
func (c *Client) urlOverhead(e reqctx.Endpoint) int {
	return c.URLBytes(e) + len("?=") + maxParamName
}

// idBytes returns the number of bytes that ids and commas may use in the URL of one call.
func (c *Client) idBytes(e reqctx.Endpoint) int {
	length, _ := strconv.Atoi(c.value(settingMaxURL)) // the value has been checked
	return length - c.urlOverhead(e)
}

// maxListIDs returns the greatest number of ids in one list.
func (c *Client) maxListIDs(e reqctx.Endpoint) int {
	if e == reqctx.EndpointPrices {
		return c.cfg.MaxIDs
	}
	return min(c.cfg.MaxIDs, maxDetailIDs)
}

// escapedBytes returns the length in bytes of the escaped ids in a URL, with a comma after each id.
func escapedBytes(ids []string) (n int) {
	for _, id := range ids {
		n += len(url.QueryEscape(id)) + 1
	}
	return n
}

// listCost returns the result of Client.Cost for an endpoint with a list parameter.
func (c *Client) listCost(e reqctx.Endpoint, keys, bytes int) int {
	if keys <= 0 {
		return 0
	}
	return min(max(rest.CeilDiv(keys, c.maxListIDs(e)), rest.CeilDiv(bytes+keys, max(c.idBytes(e), 1))), keys)
}

// splitEnds splits keys into lists that each fit into one call. List i is keys[ends[i-1]:ends[i]], and the first list is
// keys[:ends[0]]. An id that is too long for a URL is a list of its own.
func (c *Client) splitEnds(e reqctx.Endpoint, keys []string) (ends []int) {
	maxBytes, most, from, bytes := c.idBytes(e), c.maxListIDs(e), 0, 0
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
