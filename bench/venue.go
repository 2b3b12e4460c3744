package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// venue reads the demo venue directly. The responses of the servers are compared with its data.
type venue struct{ url string }

// listing has the venue's data from which the workloads are made.
type listing struct {
	open []listedMarket
	// deep are open markets with exactly two tokens, whose books both have at least 20 levels on each side.
	deep []listedMarket
	// held are the tokens of the positions of the address holder.
	held []string
}

// listedMarket is an open market.
type listedMarket struct {
	MarketID string        `json:"marketId"`
	TickSize json.Number   `json:"tickSize"`
	Outcomes []listedToken `json:"outcomes"`
}

type listedToken struct {
	TokenID string      `json:"tokenId"`
	Price   json.Number `json:"price"`
}

func (m listedMarket) tokens() []string {
	ids := make([]string, len(m.Outcomes))
	for i, t := range m.Outcomes {
		ids[i] = t.TokenID
	}
	return ids
}

func (l *listing) tokens() (ids []string) {
	for _, m := range l.open {
		ids = append(ids, m.tokens()...)
	}
	return ids
}

// list reads all open markets, and finds up to the given number of deep markets.
func (v venue) list(ctx context.Context, deep int) (*listing, error) {
	l := &listing{}
	for cursor := ""; ; {
		var page struct {
			Markets    []listedMarket `json:"markets"`
			NextCursor string         `json:"nextCursor"`
		}
		query := url.Values{"status": {"OPEN"}, "sort": {"volume"}, "limit": {"100"}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		if err := v.get(ctx, "/api/exchange/market-search", query, &page); err != nil {
			return nil, err
		}
		l.open = append(l.open, page.Markets...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	for _, m := range l.open {
		if len(l.deep) == deep {
			break
		}
		ok := len(m.Outcomes) == 2
		for _, t := range m.Outcomes {
			if !ok {
				break
			}
			b, err := v.book(ctx, t.TokenID)
			if err != nil {
				return nil, err
			}
			ok = len(b.Bids) == bookDepth && len(b.Asks) == bookDepth
		}
		if ok {
			l.deep = append(l.deep, m)
		}
	}
	positions, err := v.positions(ctx, holder, holderCredentials)
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		l.held = append(l.held, p.TokenID)
	}
	if len(l.deep) == 0 || len(l.tokens()) < 2*boardSize {
		return nil, errors.New("the venue has too few markets")
	}
	return l, nil
}

// bookDepth is the number of levels that the market page has on each side of a book.
const bookDepth = 20

type (
	venuePosition struct {
		MarketID, TokenID, Outcome string
		Size, AvgPrice             json.Number
	}
	venueMarket struct {
		MarketID, Slug, Question, Category string
		Outcomes                           []struct{ TokenID, Outcome string }
	}
	venueLevel struct{ Price, Size json.Number }
	venueBook  struct{ Bids, Asks []venueLevel }
)

func (v venue) positions(ctx context.Context, address, credentials string) ([]venuePosition, error) {
	plain, err := base64.StdEncoding.DecodeString(credentials)
	if err != nil {
		return nil, err
	}
	var in struct{ Positions []venuePosition }
	err = v.get(ctx, "/api/user/positions", url.Values{"address": {address}, "credentials": {string(plain)}}, &in)
	return in.Positions, err
}

func (v venue) book(ctx context.Context, token string) (b venueBook, err error) {
	err = v.get(ctx, "/api/exchange/orderbook", url.Values{"tokenId": {token}, "depth": {strconv.Itoa(bookDepth)}}, &b)
	return b, err
}

// markets returns markets by their ids.
func (v venue) markets(ctx context.Context, ids []string) (map[string]venueMarket, error) {
	out := make(map[string]venueMarket, len(ids))
	for part := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(ids))), 40) {
		var in struct{ Markets []venueMarket }
		if err := v.get(ctx, "/api/exchange/market-details", url.Values{"ids": {strings.Join(part, ",")}}, &in); err != nil {
			return nil, err
		}
		for _, m := range in.Markets {
			out[m.MarketID] = m
		}
	}
	return out, nil
}

// prices returns a map from tokens to prices. The map omits tokens without a price at the venue. prices does not send invalidID
// to the venue.
func (v venue) prices(ctx context.Context, tokens []string) (map[string]any, error) {
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(id string) bool { return id == invalidID })
	out := make(map[string]any, len(tokens))
	for part := range slices.Chunk(tokens, 40) {
		var in struct{ Prices []listedToken }
		if err := v.get(ctx, "/api/exchange/prices", url.Values{"tokenIds": {strings.Join(part, ",")}}, &in); err != nil {
			return nil, err
		}
		for _, p := range in.Prices {
			out[p.TokenID] = p.Price.String()
		}
	}
	return out, nil
}

// answer reads the venue and returns the data that a server must return for a question.
func (v venue) answer(ctx context.Context, q question) (any, error) {
	switch {
	case q.address != "":
		return v.answerPortfolio(ctx, q)
	case q.market != "":
		return v.answerMarket(ctx, q.market)
	case q.tokens != nil:
		known, err := v.prices(ctx, q.tokens)
		list := make([]any, len(q.tokens))
		for i, id := range q.tokens {
			list[i] = price(known, id, true)
		}
		return object{"tokenPrices": list}, err
	}
	return object{"__typename": "Query"}, nil
}

type object = map[string]any

// price returns the price object of a token, or nil if the price is not known. If named is true, the object also has the
// token's id.
func price(known object, id string, named bool) any {
	p, ok := known[id]
	switch {
	case !ok:
		return nil
	case named:
		return object{"tokenId": id, "price": p}
	}
	return object{"price": p}
}

func (v venue) answerPortfolio(ctx context.Context, q question) (any, error) {
	positions, err := v.positions(ctx, q.address, q.credentials)
	if err != nil {
		return nil, err
	}
	positions = positions[:min(len(positions), 50)]
	var ids, tokens []string
	for _, p := range positions {
		ids, tokens = append(ids, p.MarketID), append(tokens, p.TokenID)
	}
	markets, err := v.markets(ctx, ids)
	if err != nil {
		return nil, err
	}
	known, err := v.prices(ctx, tokens)
	if err != nil {
		return nil, err
	}
	nodes := make([]any, len(positions))
	for i, p := range positions {
		m := markets[p.MarketID]
		nodes[i] = object{
			"marketId": p.MarketID, "outcome": p.Outcome, "size": p.Size.String(), "avgPrice": p.AvgPrice.String(),
			"market": object{"question": m.Question, "slug": m.Slug},
			"token":  object{"tokenId": p.TokenID, "outcome": p.Outcome, "price": price(known, p.TokenID, false)},
		}
	}
	return object{"user": object{"positions": object{"nodes": nodes}}}, nil
}

func (v venue) answerMarket(ctx context.Context, id string) (any, error) {
	markets, err := v.markets(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	m := markets[id]
	var ids []string
	for _, t := range m.Outcomes {
		ids = append(ids, t.TokenID)
	}
	known, err := v.prices(ctx, ids)
	if err != nil {
		return nil, err
	}
	tokens := make([]any, len(m.Outcomes))
	for i, t := range m.Outcomes {
		b, err := v.book(ctx, t.TokenID)
		if err != nil {
			return nil, err
		}
		tokens[i] = object{
			"tokenId": t.TokenID, "outcome": t.Outcome, "price": price(known, t.TokenID, false),
			"orderbook": object{"bids": levels(b.Bids), "asks": levels(b.Asks)},
		}
	}
	return object{"market": object{"question": m.Question, "slug": m.Slug, "category": m.Category, "tokens": tokens}}, nil
}

func levels(in []venueLevel) []any {
	out := make([]any, len(in))
	for i, l := range in {
		out[i] = object{"price": l.Price.String(), "size": l.Size.String()}
	}
	return out
}

// check compares the response to a question with the present data of the venue.
func (v venue) check(ctx context.Context, q question, answer []byte) error {
	want, err := v.answer(ctx, q)
	if err != nil {
		return err
	}
	var got any
	if q.fails {
		err = readFailing(answer, &got)
	} else {
		err = readData(answer, &got)
	}
	if err != nil {
		return err
	}
	if q.hasFailingField {
		want.(object)[failingName] = failedData
	}
	if !reflect.DeepEqual(got, want) {
		said, _ := json.Marshal(want)
		return fmt.Errorf("the answer is\n%.2000s\nand the venue says\n%.2000s", answer, said)
	}
	return nil
}

// calls returns the number of requests that the venue has received.
func (v venue) calls(ctx context.Context) (n int64, err error) {
	n, _, err = v.stats(ctx)
	return n, err
}

// stats returns the number of requests that the venue has received, and the number of ids in these requests.
func (v venue) stats(ctx context.Context) (calls, ids int64, err error) {
	var stats struct{ Requests, Keys map[string]int64 }
	err = v.get(ctx, "/__control/stats", nil, &stats)
	for _, n := range stats.Requests {
		calls += n
	}
	for _, n := range stats.Keys {
		ids += n
	}
	return calls, ids, err
}

func (v venue) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	b, err := fetch(req)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// readFailing reads the data of a response that must have exactly one error.
func readFailing(answer []byte, data any) error {
	var in struct {
		Data   json.RawMessage   `json:"data"`
		Errors []json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(answer, &in); err != nil {
		return err
	}
	if len(in.Errors) != 1 {
		return fmt.Errorf("answer with %d errors: %.500s", len(in.Errors), answer)
	}
	return json.Unmarshal(in.Data, data)
}

// readData reads the data of a response that must have no errors.
func readData(answer []byte, data any) error {
	var in struct {
		Data   json.RawMessage `json:"data"`
		Errors json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(answer, &in); err != nil {
		return err
	}
	if in.Errors != nil {
		return fmt.Errorf("answer with errors: %.500s", in.Errors)
	}
	return json.Unmarshal(in.Data, data)
}
