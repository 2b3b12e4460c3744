package generic

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

const (
	// maxDetailIDs is the greatest number of ids in a list parameter that is not in the venue's documentation.
	maxDetailIDs = 50
	// maxParamName is the number of bytes that idBytes reserves for the name of a list parameter.
	maxParamName = 32
)

// idBytes returns the number of bytes that ids and commas may use in the URL of one call.
func (c reading) idBytes(e upstream.Endpoint) int {
	length, _ := strconv.Atoi(c.value(settingMaxURL)) // the value has been checked
	return length - c.URLBytes(e) - len("?=") - maxParamName
}

func (c *Client) maxListIDs(e upstream.Endpoint) int {
	if e == upstream.EndpointPrices {
		return c.cfg.MaxIDs
	}
	return min(c.cfg.MaxIDs, maxDetailIDs)
}

func escapedBytes(ids []string) (n int) {
	for _, id := range ids {
		n += len(url.QueryEscape(id)) + 1
	}
	return n
}

func (c reading) listCost(e upstream.Endpoint, keys, bytes int) int {
	if keys <= 0 {
		return 0
	}
	return min(max(rest.CeilDiv(keys, c.maxListIDs(e)), rest.CeilDiv(bytes+keys, max(c.idBytes(e), 1))), keys)
}

// lists divides ids into lists that each fit into one call. If single is true, each id is a list of its own, and so is an id that is
// too long for a URL.
func (c reading) lists(e upstream.Endpoint, ids []string, single bool) (lists [][]string) {
	maxBytes, most, from, bytes := c.idBytes(e), c.maxListIDs(e), 0, 0
	for i := range ids {
		more := escapedBytes(ids[i : i+1])
		if i > from && (single || i-from == most || bytes+more > maxBytes) {
			lists = append(lists, ids[from:i])
			from, bytes = i, 0
		}
		bytes += more
	}
	if len(ids) > 0 {
		lists = append(lists, ids[from:])
	}
	return lists
}

func urlTooLong(err error) bool {
	c, ok := errors.AsType[*rest.CallFailure](err)
	return ok && (c.Status == http.StatusRequestURITooLong || c.Status == http.StatusRequestHeaderFieldsTooLarge)
}
