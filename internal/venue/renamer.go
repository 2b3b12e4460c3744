package venue

import (
	"slices"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/venue/wire"
)

// renamer changes the ids in copies of values: it writes the name of a further venue before them or cuts it off.
type renamer struct {
	venue string
	cut   bool
	// foreign reports that cut is true and an id does not begin with venue.
	foreign bool
	// seen maps markets to their copies, because a page may contain a market several times.
	seen map[*market.Market]*market.Market
}

func (r *renamer) ids(ids ...*string) {
	for _, id := range ids {
		switch {
		case *id == "":
		case r.cut:
			own, ok := market.CutVenue(r.venue, *id)
			*id, r.foreign = own, r.foreign || !ok
		default:
			*id = wire.Intern(market.Qualify(r.venue, *id))
		}
	}
}

// renamed returns a copy of a value, or nil for nil. It never changes a value of a driver, because the driver may keep the value or
// return it for several keys.
func renamed[T any](r *renamer, value *T) *T {
	if value == nil {
		return nil
	}
	c := *value
	r.rename(&c)
	return &c
}

// renamedAll returns a copy of a list.
func renamedAll[T any](r *renamer, values []T) []T {
	values = slices.Clone(values)
	for i := range values {
		r.rename(&values[i])
	}
	return values
}

// rename changes the ids of a value that nobody else has. It copies what the value refers to. It does not change the ids of orders. In
// global ids, they follow the address of the account, which names the venue.
func (r *renamer) rename(value any) {
	switch v := value.(type) {
	case *market.Price:
		r.ids(&v.TokenID)
	case *market.Spread:
		r.ids(&v.TokenID)
	case *market.Book:
		r.ids(&v.TokenID)
	case *market.PriceHistory:
		r.ids(&v.TokenID)
	case **market.Market:
		if r.seen == nil {
			r.seen = make(map[*market.Market]*market.Market)
		}
		if r.seen[*v] == nil {
			r.seen[*v] = renamed(r, *v)
		}
		*v = r.seen[*v]
	case *market.Market:
		r.ids(&v.MarketID, &v.Slug, &v.EventID, &v.EventSlug)
		v.Outcomes = renamedAll(r, v.Outcomes)
	case *market.Outcome:
		r.ids(&v.TokenID)
	case *market.MarketChange:
		r.ids(&v.WinningTokenID)
	case *market.Event:
		r.ids(&v.EventID, &v.Slug)
		v.Markets = renamedAll(r, v.Markets)
	case *queries.SearchPage:
		v.Markets = renamedAll(r, v.Markets)
	case *queries.EventPage:
		v.Events = renamedAll(r, v.Events)
	case *queries.FoundEvent:
		v.Event, v.Matches = renamed(r, v.Event), renamedAll(r, v.Matches)
	case *queries.TradePage:
		v.Trades = renamedAll(r, v.Trades)
	case *queries.HistoryPage:
		v.Records = renamedAll(r, v.Records)
	case *market.Position:
		r.ids(&v.MarketID, &v.TokenID)
	case *market.Order:
		r.ids(&v.MarketID, &v.TokenID)
	case *market.Trade:
		r.ids(&v.TradeID, &v.MarketID, &v.TokenID)
	case *market.HistoryRecord:
		v.ID = recordID(*v)
		r.ids(&v.ID, &v.MarketID, &v.TokenID)
	case *messages.Topic:
		r.ids(&v.ID)
	case *messages.Message:
		r.rename(&v.Topic)
		v.Price, v.Spread, v.Book, v.Market = renamed(r, v.Price), renamed(r, v.Spread), renamed(r, v.Book), renamed(r, v.Market)
		v.Trades, v.Orders, v.Positions = renamedAll(r, v.Trades), renamedAll(r, v.Orders), renamedAll(r, v.Positions)
	default:
		r.renameQuery(value)
	}
}

// recordID returns an id for a record of a further venue. A record may have no id at all, and equal ones of two venues would have the
// same key.
func recordID(r market.HistoryRecord) string {
	if r.ID != "" {
		return r.ID
	}
	r.Ordinal = 0
	return r.Key()
}

// renameQuery does what rename does, for the arguments of a Reader.
func (r *renamer) renameQuery(query any) {
	switch v := query.(type) {
	case *string:
		r.ids(v)
	case *[]string:
		*v = renamedAll(r, *v)
	case *market.Address:
		r.ids((*string)(v))
	case *market.EventRef:
		r.ids(&v.EventID, &v.EventSlug)
	case *queries.Book:
		r.ids(&v.TokenID)
	case *[]queries.Book:
		*v = renamedAll(r, *v)
	case *queries.PriceHistory:
		r.ids(&v.TokenID)
	case *[]queries.PriceHistory:
		*v = renamedAll(r, *v)
	case *queries.Search:
		r.ids(&v.EventID, &v.EventSlug)
	case *queries.MarketTrades:
		r.ids(&v.MarketID, &v.TokenID)
	}
}
