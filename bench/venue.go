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
	prices  map[string]decimal
}

type listedMarket struct {
	MarketID, Slug, Question, Category, Status string
	TickSize                                   float64
	Outcomes                                   []struct {
		TokenID, Outcome string
		Price            decimal
		book             *book // nil before readBooks
	}
}

// book has sorted members, like the response that it is compared with.
type book struct {
	Asks []level `json:"asks"`
	Bids []level `json:"bids"`
}

type level struct {
	Price decimal `json:"price"`
	Size  decimal `json:"size"`
}

// decimal has the digits of a number of the venue. In JSON, the venue writes a number and the service a string.
type decimal string

func (d *decimal) UnmarshalJSON(number []byte) error {
	*d = decimal(number)
	return nil
}

const (
	maxCalls  = 16 // concurrent calls to the venue
	bookDepth = 20 // levels on each side of the books that are compared
)

func readVenue(ctx context.Context, url string) (*venue, error) {
	v := &venue{url: url, byID: map[string]*listedMarket{}, prices: map[string]decimal{}}
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
	for _, t := range m.Outcomes {
		tokens = append(tokens, object{"tokenId": t.TokenID, "outcome": t.Outcome, "price": object{"price": t.Price}, "orderbook": t.book})
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
	v.prices[m.token] = decimal(m.literal())
	_, err := fetch(ctx, http.MethodPost, v.url+"/__control/price", fmt.Sprintf(`{"tokenId":%q,"price":%s}`, m.token, m.literal()))
	return err
}
