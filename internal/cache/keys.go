package cache

import (
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// The ids in a client's request are parts of one large string, which an entry must not keep in memory. So the functions below copy
// the strings of a key, or take equal strings from the stored value.

// own returns a string that equals id. If text(value) equals id, own returns text(value). Otherwise, or if value is nil, own
// returns a copy of id.
func own[T any](id string, value *T, text func(*T) string) string {
	if value != nil {
		if same := text(value); same == id {
			return same
		}
	}
	return strings.Clone(id)
}

func ownPrice(key string, p *market.Price) string {
	return own(key, p, func(p *market.Price) string { return p.TokenID })
}

func ownSpread(key string, s *market.Spread) string {
	return own(key, s, func(s *market.Spread) string { return s.TokenID })
}

func ownBook(key queries.Book, b *market.Book) queries.Book {
	key.TokenID = own(key.TokenID, b, func(b *market.Book) string { return b.TokenID })
	return key
}

func ownHistory(key queries.PriceHistory, _ *market.PriceHistory) queries.PriceHistory {
	key.TokenID = strings.Clone(key.TokenID)
	return key
}

func ownMarket(key market.MarketRef, m *market.Market) market.MarketRef {
	key.Value = own(key.Value, m, func(m *market.Market) string { return m.MarketID })
	return key
}

func ownEvent(key market.EventRef, _ *market.Event) market.EventRef {
	return market.EventRef{EventID: strings.Clone(key.EventID), EventSlug: strings.Clone(key.EventSlug)}
}

func ownSearch[T any](key queries.SearchKey, _ *T) queries.SearchKey {
	for _, text := range []*string{&key.Text, &key.Status, &key.Category, &key.Tag, &key.EventID, &key.EventSlug, &key.Page} {
		*text = strings.Clone(*text)
	}
	return key
}

func ownMarketTrades(key queries.MarketTrades, _ *queries.TradePage) queries.MarketTrades {
	for _, text := range []*string{&key.MarketID, &key.TokenID, &key.Page} {
		*text = strings.Clone(*text)
	}
	return key
}

func ownUser[T any](key userKey, _ *T) userKey {
	key.address = market.Address(strings.Clone(string(key.address)))
	return key
}

func ownTrades(key tradesKey, page *queries.TradePage) tradesKey {
	key.userKey = ownUser(key.userKey, page)
	key.query.MarketID, key.query.Page = strings.Clone(key.query.MarketID), strings.Clone(key.query.Page)
	return key
}

func ownUserHistory(key historyKey, page *queries.HistoryPage) historyKey {
	key.userKey = ownUser(key.userKey, page)
	key.key.Address = key.address
	key.key.Kinds, key.key.Page.Page = strings.Clone(key.key.Kinds), strings.Clone(key.key.Page.Page)
	return key
}
