package resolvers

import (
	"cmp"
	"context"
	"slices"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

// readMarket reads a market. It returns nil if the venue does not know the market.
func readMarket(ctx context.Context, ref market.MarketRef) (*model.Market, error) {
	read, err := loaders.From(ctx).Markets.Get(ref)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return object(ctx, model.Market{Market: read.Value, Meta: read.Meta}), nil
}

// object returns a pointer to a copy of value. The memory of the copy is reused after the response.
func object[T any](ctx context.Context, value T) *T {
	o := exec.Make[T](ctx)
	*o = value
	return o
}

func byID(marketID string) market.MarketRef {
	return market.MarketRef{By: market.ByMarketID, Value: marketID}
}

func bySlug(slug string) market.MarketRef {
	return market.MarketRef{By: market.BySlug, Value: slug}
}

func eventByID(eventID string) market.EventRef { return market.EventRef{EventID: eventID} }

func eventBySlug(slug string) market.EventRef { return market.EventRef{EventSlug: slug} }

func byToken(tokenID string) market.MarketRef {
	return market.MarketRef{By: market.ByToken, Value: tokenID}
}

func (r *queryResolver) Market(ctx context.Context, marketID, slug *string, by *model.MarketBy) (*model.Market, error) {
	var input *[2]*string
	if by != nil {
		input = &[2]*string{by.MarketID, by.Slug}
	}
	ref, err := reference("marketId", marketID, slug, input, byID, bySlug)
	if err != nil {
		return nil, err
	}
	return readMarket(ctx, ref)
}

func (r *queryResolver) Markets(ctx context.Context, marketIDs []string) ([]*model.Market, error) {
	return readList(ctx, "marketIds", marketIDs, byID, &loaders.From(ctx).Markets, nil, func(read reads.Value[*market.Market]) *model.Market {
		return object(ctx, model.Market{Market: read.Value, Meta: read.Meta})
	})
}

// readList reads objects by id. The result is in the order of ids. It contains nil for an id that is unknown or invalid, or whose
// read failed. Invalid ids and failed reads are also reported as errors. If a value is still being fetched, placeholder returns a
// temporary value. The fields below this value then request their values in the same pass. If placeholder is nil, the result
// contains nil for an id whose value is still being fetched, and readList reports ErrPending.
func readList[K comparable, T, M any](ctx context.Context, argument string, ids []string, key func(string) K, from *loaders.Loader[K, T], placeholder func(K) *T, show func(reads.Value[*T]) *M) ([]*M, error) {
	if err := checkIDCount(argument, ids); err != nil {
		return nil, err
	}
	keys, indexes := exec.MakeList[K](ctx, len(ids))[:0], exec.MakeList[int](ctx, len(ids))[:0]
	for i, id := range ids {
		if err := market.CheckID(id); err != nil {
			exec.ReportAt(ctx, i, err)
			continue
		}
		keys, indexes = append(keys, key(id)), append(indexes, i)
	}
	results := exec.MakeList[reads.Result[*T]](ctx, len(keys))
	from.GetMany(keys, results)
	out := exec.MakeList[*M](ctx, len(ids))
	for j := range results {
		switch result := &results[j]; {
		case result.Err == loaders.ErrPending && placeholder != nil:
			out[indexes[j]] = show(reads.Value[*T]{Value: placeholder(keys[j])})
		case result.Err != nil:
			exec.ReportAt(ctx, indexes[j], result.Err)
		case result.Value.Value != nil:
			out[indexes[j]] = show(result.Value)
		}
	}
	return out, nil
}

// fullMarket returns the market with the fields that lists of the venue omit. It reads the market if m is a summary. If the venue
// no longer knows the market, fullMarket returns m unchanged.
func fullMarket(ctx context.Context, m *model.Market) (model.Market, error) {
	if !m.Summary {
		return *m, nil
	}
	full, err := readMarket(ctx, byID(m.MarketID))
	if err != nil {
		return model.Market{}, err
	}
	if full == nil {
		return *m, nil
	}
	return *full, nil
}

func (r *marketResolver) Venue(_ context.Context, m *model.Market) (*string, error) {
	return r.venueName(m.MarketID), nil
}

func (r *marketResolver) Token(ctx context.Context, m *model.Market, outcome string) (*model.Token, error) {
	o := m.OutcomeByLabel(outcome)
	if o == nil {
		return nil, nil
	}
	return object(ctx, m.Token(o)), nil
}

func (r *marketResolver) Description(ctx context.Context, m *model.Market) (*string, error) {
	full, err := fullMarket(ctx, m)
	if err != nil || full.Market.Description == "" {
		return nil, err
	}
	return &full.Market.Description, nil
}

// fieldsOfReadEvents are the fields of an event that make the service read the event.
var fieldsOfReadEvents = [][]string{{"startsAt"}, {"endsAt"}, {"volume"}, {"volume24h"}, {"status"}, {"image"}, {"description"}, {"exclusive"}, {"markets"}}

// Event returns the event of a market. Some venues send a market without its event's title and category. If the client also selects a
// field that makes the service read the event, the title and the category come from the event.
func (r *marketResolver) Event(ctx context.Context, m *model.Market) (*model.Event, error) {
	e := m.Event()
	x := exec.From(ctx)
	if e == nil || e.EventTitle != "" && e.EventCategory != "" || x == nil || !x.SelectsAny(fieldsOfReadEvents) {
		return e, nil
	}
	events, ref := &loaders.From(ctx).Events, eventByID(e.EventID)
	events.Prefetch([]market.EventRef{ref})
	if read, ok := events.Peek(ref); ok && read.Value != nil { // otherwise, the other fields make the pass pending
		e.EventTitle, e.EventCategory = cmp.Or(e.EventTitle, read.Value.Title), cmp.Or(e.EventCategory, read.Value.Category)
	}
	return e, nil
}

// mayBeResolved reports whether a market with this status can have a final result.
func mayBeResolved(s market.Status) bool {
	switch s {
	case market.StatusUpcoming, market.StatusOpen, market.StatusClosed, market.StatusDisputed:
		return false
	default:
		return true
	}
}

func (r *marketResolver) Resolution(ctx context.Context, m *model.Market) (*model.Resolution, error) {
	if !mayBeResolved(m.Status) {
		return nil, nil
	}
	full, err := fullMarket(ctx, m)
	if err != nil {
		return nil, err
	}
	resolution := full.Market.Resolution
	if resolution == nil && full.Status == market.StatusResolved {
		resolution = &market.Resolution{} // some venues send the winner only in the outcomes
	}
	if resolution == nil {
		return nil, nil
	}
	return &model.Resolution{Resolution: resolution, Market: full}, nil
}

func marketKey(m **market.Market) string { return (*m).MarketID }

func marketConnection(ctx context.Context, p page[*market.Market]) *model.MarketConnection {
	nodes := make([]model.Market, len(p.items))
	for i, m := range p.items {
		nodes[i] = model.Market{Market: m, Meta: p.metaOf(i)}
	}
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Market) model.MarketEdge {
		return model.MarketEdge{Cursor: cursor, Node: node}
	})
	return &model.MarketConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}
}

func (r *queryResolver) SearchMarkets(ctx context.Context, query string, filter *model.MarketSearchFilter, sort *queries.Sort, order *queries.Direction, first *int, after *string, venues []string) (*model.MarketConnection, error) {
	n, err := pageSize(first, 20, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	q, err := searchOf(query, filter, valueOr(sort, queries.SortRelevance), valueOr(order, queries.Descending))
	if err != nil {
		return nil, err
	}
	p, err := search(ctx, r.Resolver, venues, "search", q, n, after, searchMarkets)
	if err != nil {
		return nil, err
	}
	return marketConnection(ctx, p), nil
}

// searchMarkets reads one page of a search at the venue whose ids begin with name.
func searchMarkets(ctx context.Context, name string, q queries.Search, list uint64, n int, after *string) (page[*market.Market], error) {
	set := loaders.From(ctx)
	var meta reads.Meta
	p, err := readPages(ctx, func(page string, limit int) (venuePage[*market.Market], error) {
		q.Page, q.Limit = page, limit
		read, err := set.Search(name, q)
		if err != nil || read.Value == nil {
			return venuePage[*market.Market]{}, err
		}
		meta = olderMeta(meta, read.Meta)
		return venuePage[*market.Market]{read.Value.Markets, read.Value.Next, read.Value.Total, read.Value.LeftOut}, nil
	}, marketKey, list, n, after)
	p.meta = meta
	return p, err
}

func searchOf(text string, filter *model.MarketSearchFilter, sort queries.Sort, order queries.Direction) (queries.Search, error) {
	q := queries.Search{Text: text, Sort: sort, Direction: order}
	if len(text) > 1000 {
		return q, badInput("query has %d bytes; at most 1000 are accepted", len(text))
	}
	if filter == nil {
		return q, nil
	}
	if slices.Contains(filter.Status, market.StatusUnknown) {
		return q, badInput("markets can't be searched by the status UNKNOWN")
	}
	q.Status, q.Category, q.Tag = filter.Status, valueOr(filter.Category, ""), valueOr(filter.Tag, "")
	q.EndsAfter, q.EndsBefore = queries.BoundOf(filter.EndsAfter), queries.BoundOf(filter.EndsBefore)
	return q, nil
}

// olderMeta returns the older of two Metas. The result is stale if at least one of the Metas is stale. If both are stale, the Cause
// of the result is the more severe of the two.
func olderMeta(a, b reads.Meta) reads.Meta {
	older := a
	if a.ReceivedAt.IsZero() || b.ReceivedAt.Before(a.ReceivedAt) {
		older = b
	}
	for _, m := range [...]reads.Meta{a, b} {
		if m.Stale && (!older.Stale || m.Cause > older.Cause) {
			older.MarkStale(m.Cause)
		}
	}
	return older
}
