package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// askSpecimens requests the data of markets whose data may have other forms than those of the first open markets: an open one of each
// variant, a closed one, and a resolved one, which usually has no book and whose trades may be in an archive. variant returns the
// name of a market's variant. It is nil if the venue has only one.
func (q *inquiry) askSpecimens(ctx context.Context, variant func(*market.Market) string) {
	if variant != nil {
		var known []string
		for _, m := range q.search(ctx, "variants", market.StatusOpen, 100) {
			if name := variant(m); !slices.Contains(known, name) {
				known = append(known, name)
				q.askMarket(ctx, name+" market", m)
			}
		}
	}
	for _, status := range []market.Status{market.StatusClosed, market.StatusResolved} {
		kind := strings.ToLower(string(status)) + " market"
		if markets := q.search(ctx, kind, status, 1); len(markets) > 0 {
			q.askMarket(ctx, kind, markets[0])
		}
	}
}

// search returns markets with a status. If it finds none, it prints this.
func (q *inquiry) search(ctx context.Context, kind string, status market.Status, limit int) []*market.Market {
	page, err := q.client.Search(ctx, upstream.Call{}, queries.Search{Status: []market.Status{status}, Limit: limit})
	switch {
	case err != nil:
		q.read(kind, func() (string, error) { return "", err })
	case page == nil || len(page.Markets) == 0:
		q.print(kind, "the search found none")
	default:
		return page.Markets
	}
	return nil
}

// maxTradePages bounds the pages of a market's trades that askMarket reads, so that it reaches the archive of the venue.
const maxTradePages = 3

// askMarket requests all data of one market, and prints them on one line.
func (q *inquiry) askMarket(ctx context.Context, kind string, m *market.Market) {
	var tokens []string
	for _, o := range m.Outcomes {
		if o.TokenID != "" {
			tokens = append(tokens, o.TokenID)
		}
	}
	q.read(kind, func() (string, error) {
		text, errs := m.MarketID, []error(nil)
		add := func(what, found string, err error) {
			text, errs = text+", "+what+" "+found, append(errs, err)
		}
		details, err := count(q.client.MarketsByID(ctx, upstream.Call{}, []string{m.MarketID}))
		add("details", details, err)
		if len(tokens) > 0 {
			prices, err := count(q.client.Prices(ctx, upstream.Call{}, tokens))
			add("prices", prices, err)
			book, err := count(q.client.Books(ctx, upstream.Call{}, []queries.Book{{TokenID: tokens[0], Depth: queries.BookDepthStep(1)}}))
			add("book", book, err)
			today := market.DateOf(time.Now())
			history, err := count(q.client.PriceHistories(ctx, upstream.Call{}, []queries.PriceHistory{{TokenID: tokens[0], From: today - 60, To: today}}))
			add("history", history, err)
		}
		if q.client.Can(upstream.EndpointMarketTrades) == nil {
			trades, next := 0, ""
			for range maxTradePages {
				page, err := q.client.MarketTrades(ctx, upstream.Call{}, queries.MarketTrades{MarketID: m.MarketID, Limit: 100, Page: next})
				if errs = append(errs, err); err != nil {
					break
				}
				trades, errs = trades+len(page.Trades), append(errs, page.LeftOut...)
				if next = page.Next; next == "" {
					break
				}
			}
			add("trades", fmt.Sprint(trades), nil)
		}
		return text, errors.Join(errs...)
	})
}
