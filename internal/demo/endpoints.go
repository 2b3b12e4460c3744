package demo

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

type endpoint struct {
	path   string
	user   bool // needs credentials
	answer func(v *Venue, c *call, b []byte) []byte
	strict form
}

// form restricts the requests and responses of an endpoint if the venue is strict.
type form struct {
	parameters []string
	// members lists the allowed members of the response's objects. An empty list allows every member.
	members []string
	// values maps strings of the response to their replacements.
	values map[string]string
}

// endpoints lists all endpoints. Their parameters and members come from the venue's API description. This package chooses the
// parameters and members of an endpoint for which the description lists none.
var endpoints = []endpoint{
	{"/api/exchange/prices", false, (*Venue).answerPrices, form{
		parameters: []string{"tokenId", "tokenIds"},
	}},
	{"/api/exchange/orderbook", false, (*Venue).answerOrderbook, form{
		parameters: []string{"tokenId", "depth"},
		members:    []string{"bids", "asks", "price", "size", "spread"},
	}},
	{"/api/exchange/price-history", false, (*Venue).answerHistory, form{
		parameters: []string{"tokenId", "startDate", "endDate"},
	}},
	{"/api/exchange/spreads", false, (*Venue).answerSpreads, form{
		parameters: []string{"tokenId", "tokenIds"},
	}},
	{"/api/exchange/market-search", false, (*Venue).answerSearch, form{
		parameters: []string{
			"q", "status", "category", "tag", "endsAfter", "endsBefore", "eventId", "eventSlug", "sort", "order", "limit", "cursor",
		},
	}},
	{"/api/exchange/market-details", false, (*Venue).answerDetails, form{
		parameters: []string{"marketId", "tokenId", "slug"},
	}},
	{"/api/user/balance", true, (*Venue).answerBalance, form{
		parameters: []string{"address", "credentials"},
		members:    []string{"portfolioValue", "cashBalance", "totalValue"},
	}},
	{"/api/user/positions", true, (*Venue).answerPositions, form{
		parameters: []string{"address", "credentials"},
		members:    []string{"positions", "marketId", "outcome", "size", "avgPrice", "currentPrice", "unrealizedPnl"},
	}},
	{"/api/user/orders", true, (*Venue).answerOrders, form{
		parameters: []string{"address", "credentials"},
		members:    []string{"orders", "orderId", "marketId", "side", "outcome", "price", "size", "filledSize", "status", "createdAt"},
		values:     map[string]string{orderPartlyFilled: orderOpen},
	}},
	{"/api/user/trades", true, (*Venue).answerTrades, form{
		parameters: []string{"address", "credentials", "marketId", "from", "to", "limit", "cursor", "offset"},
	}},
	{"/api/user/history", true, (*Venue).answerUserHistory, form{
		parameters: []string{"address", "credentials", "marketId", "from", "to", "limit", "cursor", "offset", "type"},
	}},
}

// Endpoints returns the names of the REST API's endpoints: the last segment of each path.
func Endpoints() []string {
	names := make([]string, len(endpoints))
	for i := range endpoints {
		names[i] = endpoints[i].name()
	}
	return names
}

func (e *endpoint) name() string { return e.path[strings.LastIndexByte(e.path, '/')+1:] }

// admit refuses the call if the endpoint is disabled, or if the venue is strict and a parameter is unknown. The error names the first
// unknown parameter in alphabetical order if its name is not too long.
func (v *Venue) admit(e *endpoint, c *call) {
	if slices.Contains(v.config.Without, e.name()) {
		c.fail(errPath)
	}
	if !v.config.Strict {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.query)) {
		switch {
		case slices.Contains(e.strict.parameters, name):
		case len(name) > maxID:
			c.refuse("unknown parameter")
		default:
			c.refuse("unknown parameter " + cmp.Or(name, `""`))
		}
	}
}

func (f *form) shape(a *answer) {
	if len(f.members) == 0 && len(f.values) == 0 {
		return
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) == nil {
		body, _ := json.Marshal(f.shapeValue(doc)) // cannot fail for decoded values
		a.body = append(a.body[:0], body...)
	}
}

// shapeValue returns value with only the allowed members, and with the replacements of f.values. It changes lists and objects in
// place.
func (f *form) shapeValue(value any) any {
	switch v := value.(type) {
	case string:
		if other, ok := f.values[v]; ok {
			return other
		}
	case []any:
		for i := range v {
			v[i] = f.shapeValue(v[i])
		}
	case map[string]any:
		for name, member := range v {
			if len(f.members) > 0 && !slices.Contains(f.members, name) {
				delete(v, name)
				continue
			}
			v[name] = f.shapeValue(member)
		}
	}
	return value
}
