package resolvers

import (
	"context"
	"time"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
	"oddsgraph/loaders"
)

// readEvent reads an event. It returns nil if the venue does not know the event.
func readEvent(set *loaders.Set, ref market.EventRef) (*model.Event, error) {
	read, err := set.Events.Get(ref)
	if err != nil || read.Value == nil {
		return nil, err
	}
	return model.NewEvent(read), nil
}

func (r *queryResolver) Event(ctx context.Context, eventID, slug *string, by *model.EventBy) (*model.Event, error) {
	var input *[2]*string
	if by != nil {
		input = &[2]*string{by.EventID, by.Slug}
	}
	ref, err := reference("eventId", eventID, slug, input, eventByID, eventBySlug)
	if err != nil {
		return nil, err
	}
	return readEvent(loaders.From(ctx), ref)
}

// fullEvent returns the event with its markets. It reads the event if e.Loaded is nil. It returns nil if the venue no longer knows
// the event.
func fullEvent(ctx context.Context, e *model.Event) (*model.Event, error) {
	if e.Loaded != nil {
		return e, nil
	}
	return readEvent(loaders.From(ctx), market.EventRef{EventID: e.EventID})
}

func (r *eventResolver) Venue(_ context.Context, e *model.Event) (*string, error) {
	return r.venueName(e.EventID), nil
}

func (r *eventResolver) StartsAt(ctx context.Context, e *model.Event) (*time.Time, error) {
	full, err := fullEvent(ctx, e)
	if full == nil || full.Loaded.StartsAt.IsZero() {
		return nil, err
	}
	return &full.Loaded.StartsAt, nil
}

func (r *eventResolver) EndsAt(ctx context.Context, e *model.Event) (*time.Time, error) {
	full, err := fullEvent(ctx, e)
	if full == nil || full.Loaded.EndsAt.IsZero() {
		return nil, err
	}
	return &full.Loaded.EndsAt, nil
}

func (r *eventResolver) Volume(ctx context.Context, e *model.Event) (*market.Decimal, error) {
	full, err := fullEvent(ctx, e)
	if full == nil {
		return nil, err
	}
	return r.sumOf(full.Loaded, full.Loaded.Volume)
}

func (r *eventResolver) Volume24h(ctx context.Context, e *model.Event) (*market.Decimal, error) {
	full, err := fullEvent(ctx, e)
	if full == nil {
		return nil, err
	}
	return r.sumOf(full.Loaded, full.Loaded.Volume24h)
}

// sumOf returns sum, which is a sum over the markets of the event e. If some of these markets could not be read, sumOf returns an
// error.
func (r *Resolver) sumOf(e *market.Event, sum *market.Decimal) (*market.Decimal, error) {
	if len(e.LeftOut) > 0 {
		err := market.Errorf(market.CodeUpstreamBadResponse, "some of the event's markets could not be read, so its volume is not known")
		return nil, market.AtVenue(r.Names.Of(e.EventID), err)
	}
	return sum, nil
}

func (r *eventResolver) Status(ctx context.Context, e *model.Event) (*market.Status, error) {
	full, err := fullEvent(ctx, e)
	if full == nil {
		return nil, err
	}
	return new(full.Loaded.Status()), nil
}

func (r *eventResolver) Image(ctx context.Context, e *model.Event) (*string, error) {
	full, err := fullEvent(ctx, e)
	if full == nil || full.Loaded.Image == "" {
		return nil, err
	}
	return &full.Loaded.Image, nil
}

func (r *eventResolver) Description(ctx context.Context, e *model.Event) (*string, error) {
	full, err := fullEvent(ctx, e)
	if full == nil || full.Loaded.Description == "" {
		return nil, err
	}
	return &full.Loaded.Description, nil
}

func (r *eventResolver) Exclusive(ctx context.Context, e *model.Event) (*bool, error) {
	full, err := fullEvent(ctx, e)
	if full == nil {
		return nil, err
	}
	return full.Loaded.Exclusive, nil
}

func (r *eventResolver) Markets(ctx context.Context, e *model.Event, first *int, after *string) (*model.MarketConnection, error) {
	part, err := parsePageArguments(listHash("event", e.EventID), first, after)
	if err != nil {
		return nil, err
	}
	full, err := fullEvent(ctx, e)
	if full == nil {
		return nil, err
	}
	addLeftOut(ctx, full.Loaded.LeftOut)
	p := cutPage(ctx, full.Loaded.Markets, func(m **market.Market) uint64 { return keyHash(marketKey(m)) }, part)
	p.meta = full.Meta
	return marketConnection(ctx, p), nil
}

// foundEvents contains the events of the first pages of a search, each event once.
type foundEvents struct {
	list    []queries.FoundEvent
	leftOut market.LeftOut
	meta    reads.Meta
	// ended reports that the list contains the events of all pages of the venue. hasMore reports that the list contains events after
	// the requested page of the connection.
	ended, hasMore bool
}

// add adds the events of a page. For an event that was on an earlier page, it adds only the new matches. The map indexes contains,
// for each event id, the index of the event in f.list.
func (f *foundEvents) add(page *queries.EventPage, indexes map[string]int) {
	for _, e := range page.Events {
		i, known := indexes[e.EventID]
		if !known {
			indexes[e.EventID] = len(f.list)
			f.list = append(f.list, e)
			continue
		}
		f.list[i].Matches = appendMissing(f.list[i].Matches, e.Matches)
	}
	f.leftOut = append(f.leftOut, page.LeftOut...)
}

// appendMissing returns a new list with the markets of both lists, each market once.
func appendMissing(list, more []*market.Market) []*market.Market {
	out := append(make([]*market.Market, 0, len(list)+len(more)), list...) // a copy, because the cache owns list
	known := make(map[string]bool, len(out))
	for _, m := range out {
		known[m.MarketID] = true
	}
	for _, m := range more {
		if !known[m.MarketID] {
			out = append(out, m)
		}
	}
	return out
}

// findEvents reads pages of a search until they contain the requested page of the connection and at least one more event. It reads
// at most maxPages pages of the venue whose ids begin with the name, so the result may lack events of the requested page.
func findEvents(set *loaders.Set, venue string, q queries.Search, part pageArguments) (f foundEvents, err error) {
	indexes := make(map[string]int)
	for range maxPages {
		read, err := set.SearchEvents(venue, q)
		if err != nil || read.Value == nil {
			return f, err
		}
		f.meta = olderMeta(f.meta, read.Meta)
		f.add(read.Value, indexes)
		if q.Page = read.Value.Next; q.Page == "" {
			f.ended = true
			return f, nil
		}
		hashes := newKeyHashes(len(f.list), func(i int) uint64 { return keyHash(f.list[i].EventID) })
		if part.after.reached(hashes) && len(f.list) > part.after.start(hashes)+part.first {
			f.hasMore = true
			return f, nil
		}
	}
	return f, nil
}

func (r *queryResolver) SearchEvents(ctx context.Context, query string, filter *model.MarketSearchFilter, sort *queries.Sort, order *queries.Direction, first *int, after *string, venues []string) (*model.EventConnection, error) {
	n, err := pageSize(first, 20, maxUpstreamPage)
	if err != nil {
		return nil, err
	}
	q, err := searchOf(query, filter, valueOr(sort, queries.SortRelevance), valueOr(order, queries.Descending))
	if err != nil {
		return nil, err
	}
	p, err := search(ctx, r.Resolver, venues, "events", q, n, after, searchEvents)
	if err != nil {
		return nil, err
	}
	return eventConnection(ctx, p), nil
}

// searchEvents reads one page of a search at the venue whose ids begin with name.
func searchEvents(ctx context.Context, name string, q queries.Search, list uint64, n int, after *string) (p page[queries.FoundEvent], err error) {
	part, err := parsePageArguments(list, &n, after)
	if err != nil {
		return p, err
	}
	found, err := findEvents(loaders.From(ctx), name, q, part)
	if err != nil {
		return p, err
	}
	addLeftOut(ctx, found.leftOut)
	p = cutPage(ctx, found.list, func(e *queries.FoundEvent) uint64 { return keyHash(e.EventID) }, part)
	p.meta, p.info.HasNextPage = found.meta, p.info.HasNextPage || found.hasMore
	if !found.ended {
		p.total = nil
	}
	return p, nil
}

func eventConnection(ctx context.Context, p page[queries.FoundEvent]) *model.EventConnection {
	nodes := make([]model.Event, len(p.items))
	for i, e := range p.items {
		nodes[i] = model.FoundEvent(e.Event, e.Whole, p.metaOf(i))
	}
	i := -1
	edges := edgesOf(ctx, p, nodes, func(cursor string, node model.Event) model.EventEdge {
		i++
		return model.EventEdge{Cursor: cursor, Node: node, Matches: marketsOf(p.items[i].Matches, p.metaOf(i))}
	})
	return &model.EventConnection{Edges: edges, Nodes: nodes, PageInfo: p.info, TotalCount: p.total}
}

func marketsOf(list []*market.Market, meta reads.Meta) []model.Market {
	out := make([]model.Market, len(list))
	for i, m := range list {
		out[i] = model.Market{Market: m, Meta: meta}
	}
	return out
}

func (r *queryResolver) Categories(ctx context.Context, venue *string) ([]model.Category, error) {
	name, err := r.nameInIDs(venue)
	if err != nil {
		return nil, err
	}
	read, err := loaders.From(ctx).Categories(name)
	if err != nil || read.Value == nil {
		return nil, err
	}
	out := make([]model.Category, len(read.Value.List))
	for i, c := range read.Value.List {
		out[i] = model.Category{Topic: c}
	}
	return out, nil
}
