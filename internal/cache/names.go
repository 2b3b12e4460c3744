package cache

import (
	"unsafe"

	"oddsgraph/internal/market"
)

// marketNames maps the slugs and tokens of markets to the ids of their markets.
type marketNames struct {
	*list[market.MarketRef, named]
	// unknown contains the absences of markets.
	unknown *list[market.MarketRef, *entry[market.Market]]
}

// named is an item of marketNames: the id of the market with a slug or a token. All names of a market share the memory of the id. But each
// of them counts it, because each may be the last one that keeps it in memory.
type named struct {
	id    market.MarketRef
	bytes int
}

func (n named) size() int  { return n.bytes }
func (n named) live() bool { return false }
func (n named) leave()     {}

// learn maps the slug and the tokens of each market to the market's id. If the slug or a token was remembered as unknown, learn
// removes that absence.
func (n *marketNames) learn(markets ...*market.Market) {
	for _, m := range markets {
		id := market.MarketRef{By: market.ByMarketID, Value: m.MarketID}
		is := func(by market.MarketRefKind, value string) {
			if value != "" && m.MarketID != "" {
				ref := market.MarketRef{By: by, Value: value}
				n.put(ref, named{id, overhead(&ref, int(unsafe.Sizeof(named{}))) + allocated(len(id.Value))})
				n.unknown.remove(ref)
			}
		}
		is(market.BySlug, m.Slug)
		for i := range m.Outcomes {
			is(market.ByToken, m.Outcomes[i].TokenID)
		}
	}
}
