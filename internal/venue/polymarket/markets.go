package polymarket

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// marketLookup names the filter of /markets/keyset for one kind of id.
type marketLookup struct {
	endpoint  upstream.Endpoint
	parameter string
	isID      func(string) bool
	values    func(id string) []string
	// has reports whether a row is about id. The row may be bad.
	has func(row marketRow, id string) bool
}

// The lookups of markets by their ids, by their tokens and by their slugs. An id belongs to the first lookup of its list whose isID
// returns true.
var (
	byID = []marketLookup{
		{upstream.EndpointMarketsByID, "condition_ids", isCondition, conditionForms, hasCondition},
		{upstream.EndpointMarketsByID, "id", isGammaID, only, hasGammaID},
	}
	byToken = []marketLookup{
		{upstream.EndpointMarketsByToken, "position_ids", isPosition, only, hasToken},
		{upstream.EndpointMarketsByToken, "clob_token_ids", isToken, only, hasToken},
		{upstream.EndpointMarketsByToken, "condition_ids", func(s string) bool { return isCondition(marketOf(s)) }, conditionFormsOf, func(row marketRow, id string) bool {
			return hasCondition(row, marketOf(id))
		}},
		{upstream.EndpointMarketsByToken, "id", func(s string) bool { return isGammaID(marketOf(s)) }, onlyMarketOf, func(row marketRow, id string) bool {
			return hasGammaID(row, marketOf(id))
		}},
	}
	bySlug = []marketLookup{
		{upstream.EndpointMarketBySlug, "slug", func(s string) bool { return s != "" }, only, func(row marketRow, id string) bool {
			return row.row.Of(wire.FieldSlug).Is(id)
		}},
	}
)

func only(id string) []string { return []string{id} }

// conditionFormsOf and onlyMarketOf return the values for the market in an id from outcomeID.
func conditionFormsOf(id string) []string { return conditionForms(marketOf(id)) }
func onlyMarketOf(id string) []string     { return only(marketOf(id)) }

func hasCondition(row marketRow, id string) bool {
	own, _ := row.row.Of(fieldConditionID).ID()
	return strings.EqualFold(conditionID(own), conditionID(id))
}

func hasGammaID(row marketRow, id string) bool {
	own, _ := row.row.Of(fieldID).ID()
	return own == id
}

func hasToken(row marketRow, id string) bool { return slices.Contains(tokenIDs(row.row), id) }

// MarketsByID returns the markets with the given condition ids. If Gamma does not state the result of a closed market, MarketsByID
// also requests the market from the CLOB API.
func (d *Driver) MarketsByID(ctx context.Context, call upstream.Call, marketIDs []string) ([]upstream.Result[*market.Market], error) {
	return d.markets(ctx, call, byID, marketIDs)
}

// MarketsByToken returns the markets of tokens. Like MarketsByID, it requests missing results of closed markets from the CLOB API.
func (d *Driver) MarketsByToken(ctx context.Context, call upstream.Call, tokenIDs []string) ([]upstream.Result[*market.Market], error) {
	return d.markets(ctx, call, byToken, tokenIDs)
}

// MarketBySlug returns a market, or nil if Polymarket does not know the slug.
func (d *Driver) MarketBySlug(ctx context.Context, call upstream.Call, slug string) (*market.Market, error) {
	results, err := d.markets(ctx, call, bySlug, []string{slug})
	return results[0].Value, cmp.Or(err, results[0].Err)
}

var errIgnoredFilter = errors.New("the venue ignored the filter by id")

func (d *Driver) markets(ctx context.Context, call upstream.Call, by []marketLookup, ids []string) ([]upstream.Result[*market.Market], error) {
	lists := make([][]string, len(by))
	places := make([][2]int, len(ids)) // the list of each id, and its index in the list
	for i, id := range ids {
		n := max(slices.IndexFunc(by, func(l marketLookup) bool { return l.isID(id) }), 0) // no lookup sends an id of an unknown form
		places[i] = [2]int{n, len(lists[n])}
		lists[n] = append(lists[n], id)
	}
	results, errs := make([][]upstream.Result[*market.Market], len(by)), make([]error, len(by))
	rest.ForEach(len(by), func(i int) {
		if len(lists[i]) > 0 {
			results[i], errs[i] = d.marketLookup(by[i]).Read(ctx, call, lists[i])
		}
	})
	out := make([]upstream.Result[*market.Market], len(ids))
	failed := 0
	for i, at := range places {
		out[i] = results[at[0]][at[1]]
		if errs[at[0]] != nil {
			failed++
		}
	}
	if failed < len(ids) {
		return out, nil // the errors of the calls are in the results
	}
	return out, cmp.Or(errs...)
}

// marketLookup returns the lookup of markets for one kind of id. One call returns either open or closed markets. So the first call
// requests the open markets. If this call does not find all ids, a second call requests the closed markets with the remaining ids.
// If the second call fails, the remaining ids get an error.
func (d *Driver) marketLookup(by marketLookup) rest.Lookup[market.Market] {
	return lookup(d.gamma, by.endpoint, maxMarketIDs, by.isID,
		func(ctx context.Context, call upstream.Call, ids []string, note func(string)) (rest.Values[market.Market], error) {
			out, missing := make(rest.Values[market.Market], len(ids)), ids
			var undecided []marketRow
			for _, closed := range []bool{false, true} {
				rows, err := d.namedMarkets(ctx, call, by, missing, closed, note)
				if err != nil && !closed {
					return nil, err
				}
				others := false
				for _, row := range rows {
					if !takeMarket(out, by, row, missing) {
						others = true
					}
					if row.undecided != nil {
						undecided = append(undecided, row)
					}
				}
				if err == nil && others {
					err = rest.UnknownForm(by.endpoint, errIgnoredFilter.Error())
				}
				missing = slices.DeleteFunc(slices.Clone(missing), func(id string) bool { _, ok := out[id]; return ok })
				for _, id := range missing {
					if err != nil {
						out[id] = upstream.Result[*market.Market]{Err: err}
					}
				}
				if len(missing) == 0 || err != nil {
					break
				}
			}
			d.addResults(ctx, call, undecided, note)
			return out, nil
		})
}

func (d *Driver) namedMarkets(ctx context.Context, call upstream.Call, by marketLookup, ids []string, closed bool, note func(string)) ([]marketRow, error) {
	rq := &rest.Request{Endpoint: by.endpoint, Keys: len(ids)}
	sent := make(map[string]bool, len(ids))
	for _, id := range ids {
		for _, v := range by.values(id) {
			if !sent[v] {
				sent[v] = true
				rq.Query.Set(by.parameter, v)
			}
		}
	}
	rq.Query.Set("closed", strconv.FormatBool(closed)).Set("limit", strconv.Itoa(len(ids))).Set("include_tag", "true")
	payload, err := d.gamma.Get(ctx, call, rq)
	if err != nil {
		return nil, err
	}
	rows, _, err := readMarkets(payload, note)
	return rows, formError(by.endpoint, err)
}

// takeMarket stores the market of a row under each requested id that it has. It returns false if there is none.
func takeMarket(out rest.Values[market.Market], by marketLookup, row marketRow, asked []string) (named bool) {
	for _, id := range asked {
		if row.row.Object.IsNull() || !by.has(row, id) {
			continue
		}
		named = true
		result := upstream.Result[*market.Market]{Value: row.market}
		switch {
		case row.market == nil:
			result.Err = rest.BadElement(by.endpoint, row.row.Err)
		case by.endpoint == upstream.EndpointMarketsByToken && row.market.OutcomeByToken(id) == nil:
			continue // the row contains the id, but no outcome has it
		case by.endpoint == upstream.EndpointMarketsByID && !strings.EqualFold(row.market.MarketID, conditionID(id)):
			continue // the id of the market is its condition, not its id in the Gamma API
		}
		out[id] = result
	}
	return named
}

// addResults reads the results of closed markets from the CLOB API, because Gamma does not state these results. It makes one call
// for each market. If the call fails or its response does not state the result, the status of the market does not change.
func (d *Driver) addResults(ctx context.Context, call upstream.Call, rows []marketRow, note func(string)) {
	results := make([]result, len(rows))
	errs := make([]error, len(rows))
	rest.ForEach(len(rows), func(i int) {
		const e = upstream.EndpointMarketsByID
		m := rows[i].market
		if !isCondition(m.MarketID) {
			return // the CLOB API identifies markets by their conditions
		}
		payload, err := d.clob.Get(ctx, call, &rest.Request{Endpoint: e, Path: clobPaths[e] + m.MarketID, Keys: 1})
		if err == nil {
			results[i], err = readClobResult(payload, m.MarketID, func(string) {})
		}
		errs[i] = rest.NilIfNotFound(err)
	})
	for i, row := range rows {
		if errs[i] != nil {
			note("result of a closed market is missing")
			continue
		}
		results[i].apply(row.market, row.undecided)
	}
}
