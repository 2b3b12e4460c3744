package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"golang.org/x/sync/errgroup"
)

type object = map[string]any

// venue reads the demo venue directly, so that the responses of the servers can be compared with its data.
type venue struct {
	url string
	// markets are all markets, those with the greatest volume first. byID and prices have the same data by market id and token id.
	markets []*listedMarket
	byID    map[string]*listedMarket
	prices  map[string]json.Number
}

type listedMarket struct {
	MarketID, Slug, Question, Category, Status string
	TickSize                                   json.Number
	Outcomes                                   []struct {
		TokenID, Outcome string
		Price            json.Number
		book             *book // nil before readBooks
	}
}

type book struct{ Bids, Asks []venueLevel }

type venueLevel struct{ Price, Size json.Number }

const (
	maxCalls  = 16 // concurrent calls to the venue
	bookDepth = 20 // levels on each side of the books that are compared
)

func readVenue(ctx context.Context, url string) (*venue, error) {
	v := &venue{url: url, byID: map[string]*listedMarket{}, prices: map[string]json.Number{}}
	for cursor := ""; ; {
		var page struct {
			Markets    []*listedMarket
			NextCursor string
		}
		if err := v.read(ctx, "/api/exchange/market-search?sort=volume&limit=100&cursor="+cursor, &page); err != nil {
			return nil, err
		}
		v.markets = append(v.markets, page.Markets...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, m := range v.markets {
		v.byID[m.MarketID] = m
		for _, t := range m.Outcomes {
			v.prices[t.TokenID] = t.Price
		}
	}
	return v, nil
}

func (v *venue) read(ctx context.Context, path string, into any) error {
	response, err := fetch(ctx, http.MethodGet, v.url+path, "")
	if err != nil {
		return err
	}
	return json.Unmarshal(response, into)
}

func (v *venue) open() (open []*listedMarket) {
	for _, m := range v.markets {
		if m.Status == "OPEN" {
			open = append(open, m)
		}
	}
	return open
}

func (v *venue) readBooks(ctx context.Context, markets []*listedMarket) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCalls)
	for _, m := range markets {
		for i, t := range m.Outcomes {
			g.Go(func() error {
				m.Outcomes[i].book = &book{}
				return v.read(ctx, "/api/exchange/orderbook?depth="+strconv.Itoa(bookDepth)+"&tokenId="+t.TokenID, m.Outcomes[i].book)
			})
		}
	}
	return g.Wait()
}

// deep reports whether a market has exactly two tokens, whose books both have bookDepth levels on each side.
func (m *listedMarket) deep() bool {
	for _, t := range m.Outcomes {
		if len(m.Outcomes) != 2 || len(t.book.Bids) < bookDepth || len(t.book.Asks) < bookDepth {
			return false
		}
	}
	return true
}

func tokensOf(m *listedMarket) (tokens []object) {
	levels := func(in []venueLevel) []object {
		out := make([]object, len(in))
		for i, l := range in {
			out[i] = object{"price": l.Price.String(), "size": l.Size.String()}
		}
		return out
	}
	for _, t := range m.Outcomes {
		tokens = append(tokens, object{
			"tokenId": t.TokenID, "outcome": t.Outcome, "price": object{"price": t.Price.String()},
			"orderbook": object{"bids": levels(t.book.Bids), "asks": levels(t.book.Asks)},
		})
	}
	return tokens
}

func (v *venue) calls(ctx context.Context) (n float64, err error) {
	var stats struct{ Requests map[string]float64 }
	err = v.read(ctx, "/__control/stats", &stats)
	for _, requests := range stats.Requests {
		n += requests
	}
	return n, err
}

// move is a change of a token's price. The unit of the price is 1/10,000.
type move struct {
	token string
	price int
}

// literal returns the price as the venue and the service write it.
func (m move) literal() string { return strconv.FormatFloat(float64(m.price)/10_000, 'f', -1, 64) }

// move changes the price of a token. The book of the token moves too.
func (v *venue) move(ctx context.Context, m move) error {
	v.prices[m.token] = json.Number(m.literal())
	_, err := fetch(ctx, http.MethodPost, v.url+"/__control/price", fmt.Sprintf(`{"tokenId":%q,"price":%s}`, m.token, m.literal()))
	return err
}
