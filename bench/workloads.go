package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"

	"golang.org/x/sync/errgroup"
)

const (
	portfolioQuery = `query Portfolio($address: Address!) { user(address: $address) { positions(first: 50) {
  nodes { marketId outcome size avgPrice market { question slug } token { tokenId outcome price { price } } }
} } }`
	tokenFields = `tokens { tokenId outcome price { price } orderbook(depth: 20) { bids { price size } asks { price size } } }`
	marketQuery = `query MarketPage($id: String!) { market(marketId: $id) { question slug category ` + tokenFields + ` } }`
	searchQuery = `query Search($first: Int!) { searchMarkets(filter: { status: OPEN }, sort: VOLUME, first: $first) {
  nodes { question ` + tokenFields + ` }
} }`
	pricesQuery   = `query Prices($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price } }`
	typenameQuery = `{ __typename }`
)

const (
	portfolioSize = 50   // positions of a portfolio
	boardSize     = 50   // prices of a request of W3 or V3
	boardTokens   = 1000 // tokens from which W3 and V3 choose
	searchSize    = 25   // markets of the page in searchQuery
)

// credentials open every account of the demo venue.
const credentials = `{"apiKey":"demo","secret":"demo","passphrase":"demo"}`

// workload is a list of requests that the clients send in turn.
type workload struct {
	name     string
	requests []*request
}

// workloads returns all workloads, those with the letter V with n different requests. The requests are the same in every run with
// the same venue.
func (v *venue) workloads(ctx context.Context, n int) ([]workload, error) {
	wallets, err := v.wallets(ctx, n)
	if err != nil {
		return nil, err
	}
	pages, err := v.pages(ctx, n)
	if err != nil {
		return nil, err
	}
	boards, empty := v.boards(n), newRequest(typenameQuery, nil, "", object{"__typename": "Query"})
	return []workload{
		{"W1", wallets[:1]}, {"W2", pages[:1]}, {"W3", boards[:1]}, {"W4", []*request{empty}}, {"V1", wallets}, {"V2", pages}, {"V3", boards},
	}, nil
}

func (v *venue) portfolio(ctx context.Context, address string) (*request, error) {
	var in struct {
		Positions []struct {
			MarketID, TokenID, Outcome string
			Size, AvgPrice             decimal
		}
	}
	query := url.Values{"address": {address}, "credentials": {credentials}}
	if err := v.read(ctx, "/api/user/positions?"+query.Encode(), &in); err != nil {
		return nil, err
	}
	var nodes []object
	for _, p := range in.Positions[:min(portfolioSize, len(in.Positions))] {
		m := v.byID[p.MarketID]
		if m == nil {
			return nil, fmt.Errorf("the position's market %s is not listed", p.MarketID)
		}
		for _, t := range m.Outcomes { // the foreign venue does not name the token of a position
			if t.Outcome == p.Outcome {
				p.TokenID = t.TokenID
			}
		}
		nodes = append(nodes, object{
			"marketId": p.MarketID, "outcome": p.Outcome, "size": p.Size, "avgPrice": p.AvgPrice,
			"market": object{"question": m.Question, "slug": m.Slug},
			"token":  object{"tokenId": p.TokenID, "outcome": p.Outcome, "price": object{"price": v.prices[p.TokenID]}},
		})
	}
	return newRequest(portfolioQuery, object{"address": address}, credentials, object{"user": object{"positions": object{"nodes": nodes}}}), nil
}

func (v *venue) wallets(ctx context.Context, n int) ([]*request, error) {
	random := rand.New(rand.NewPCG(1, 2))
	wallets := make([]*request, n)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxCalls)
	for i := range wallets {
		address := fmt.Sprintf("0x%016x%024x", random.Uint64(), i)
		g.Go(func() (err error) {
			wallets[i], err = v.portfolio(ctx, address)
			return err
		})
	}
	return wallets, g.Wait()
}

// pages returns requests for the pages of n markets that have two deep books.
func (v *venue) pages(ctx context.Context, n int) (pages []*request, err error) {
	for some := range slices.Chunk(v.open(), 100) {
		if len(pages) == n {
			break
		}
		if err := v.readBooks(ctx, some); err != nil {
			return nil, err
		}
		for _, m := range some {
			if m.deep() && len(pages) < n {
				page := object{"question": m.Question, "slug": m.Slug, "category": m.Category, "tokens": tokensOf(m)}
				pages = append(pages, newRequest(marketQuery, object{"id": m.MarketID}, "", object{"market": page}))
			}
		}
	}
	if len(pages) < n {
		return nil, fmt.Errorf("the venue has %d markets with two deep books, want %d", len(pages), n)
	}
	return pages, nil
}

func (v *venue) boards(n int) []*request {
	var ids []string
	for _, m := range v.open() {
		for _, t := range m.Outcomes {
			ids = append(ids, t.TokenID)
		}
	}
	boards := make([]*request, n)
	for i := range boards {
		board, prices := make([]string, boardSize), make([]object, boardSize)
		for k, at := range rand.New(rand.NewPCG(uint64(i), 0)).Perm(boardTokens)[:boardSize] {
			board[k], prices[k] = ids[at], object{"tokenId": ids[at], "price": v.prices[ids[at]]}
		}
		boards[i] = newRequest(pricesQuery, object{"ids": board}, "", object{"tokenPrices": prices})
	}
	return boards
}

func (v *venue) searchPage(ctx context.Context) (*request, error) {
	found := v.open()[:searchSize]
	if err := v.readBooks(ctx, found); err != nil {
		return nil, err
	}
	var nodes []object
	for _, m := range found {
		nodes = append(nodes, object{"question": m.Question, "tokens": tokensOf(m)})
	}
	return newRequest(searchQuery, object{"first": searchSize}, "", object{"searchMarkets": object{"nodes": nodes}}), nil
}
