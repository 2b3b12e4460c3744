package generic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

type lookup[T any] struct {
	reading
	endpoint upstream.Endpoint
	// list is the name of the parameter for several ids, and single that for one id. If list is empty, ids are requested one by one.
	// If single is empty, one id is a list of one.
	list, single string
	// setting is the setting that gave list its name. It is settings if the venue's documentation gives it.
	setting setting
	decode  func(payload wire.Value, ids []string, note func(string)) (rest.Values[T], error)
}

// read returns a result for each id, in the order of ids. If the venue refuses every list of several ids, the answer contradicts the
// setting.
func (l *lookup[T]) read(ctx context.Context, ids []string) ([]upstream.Result[*T], error) {
	results, err := rest.Lookup[T]{
		Client: l.Client.Client, Endpoint: l.endpoint,
		Split: func(ids []string) [][]string { return l.lists(l.endpoint, ids, l.list == "") },
		Call: func(ctx context.Context, _ upstream.Call, ids []string, note func(string)) (rest.Values[T], error) {
			if len(ids) == 1 && l.single != "" {
				return l.ask(ctx, l.single, ids, note)
			}
			values, err := l.ask(ctx, l.list, ids, note)
			if urlTooLong(err) && l.decided(settingMaxURL) {
				note("contradicts " + settingMaxURL.String())
			}
			return values, err
		},
		Halve: func(err error) bool { return rest.Refused(err) || urlTooLong(err) },
	}.Read(ctx, l.call, ids)
	why, _ := errors.AsType[*rest.CallFailure](err)
	if why == nil || why.Kind != rest.KindRefused && why.Kind != rest.KindShape || l.list == "" || l.setting == settings || !l.decided(l.setting) || len(ids) < 2 {
		return results, err
	}
	err = l.contradiction(l.endpoint, l.setting, "the venue refuses lists")
	for i := range results {
		results[i].Err = err
	}
	return results, err
}

// ask makes one call. An endpoint that does not know the only id has no value for it. But if spreads responds with 404, the endpoint
// may be missing, so the result is an error.
func (l *lookup[T]) ask(ctx context.Context, parameter string, ids []string, note func(string)) (rest.Values[T], error) {
	rq := &rest.Request{Endpoint: l.endpoint, Keys: len(ids)}
	rq.Query.List(parameter, ids)
	payload, err := l.Get(ctx, l.call, rq)
	notFound := market.CodeOf(err) == market.CodeNotFound && l.endpoint != upstream.EndpointSpreads
	if len(ids) == 1 && (notFound || err == nil && payload.IsNull()) {
		return nil, nil
	}
	if err != nil {
		return nil, rest.BadIfNotFound(l.endpoint, err)
	}
	return l.decode(payload, ids, note)
}

// readOne makes one call, and decodes its answer. It returns nil if the venue does not know what is requested. Failed reads with the
// same key start a backoff.
func readOne[T any](ctx context.Context, c reading, key string, rq *rest.Request, decode func(payload wire.Value, drift *rest.Drift) (*T, error)) (*T, error) {
	return rest.WithBackoff(c.Client.Client, rq.Endpoint, key, func() (*T, error) {
		payload, err := c.Get(ctx, c.call, rq)
		if err != nil || payload.IsNull() {
			return nil, rest.NilIfNotFound(err)
		}
		var drift rest.Drift
		value, err := decode(payload, &drift)
		c.Report(rq.Endpoint, drift)
		return value, err
	})
}

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
