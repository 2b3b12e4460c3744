package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
)

// The documents.
const (
	portfolioQuery = `query Portfolio($address: Address!) {
  user(address: $address) {
    positions(first: 50) {
      nodes { marketId outcome size avgPrice market { question slug } token { tokenId outcome price { price } } }
    }
  }
}`
	marketQuery = `query MarketPage($id: String!) {
  market(marketId: $id) {
    question slug category
    tokens { tokenId outcome price { price } orderbook(depth: 20) { bids { price size } asks { price size } } }
  }
}`
	pricesQuery   = `query Prices($ids: [String!]!) { tokenPrices(tokenIds: $ids) { tokenId price } }`
	typenameQuery = `{ __typename }`
)

// The demo account with 50 positions.
const holder = "0x2222222222222222222222222222222222222222"

var holderCredentials = base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`))

// workload is a set of requests that are asked in turn.
type workload struct {
	name, about string
	requests    []request
}

// request is one request, as JSON and as it is sent.
type request struct{ body, wire []byte }

func newRequest(document, operation string, variables map[string]any, credentials string) request {
	body, err := json.Marshal(struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName,omitempty"`
		Variables     map[string]any `json:"variables,omitempty"`
	}{document, operation, variables})
	if err != nil {
		panic("bench: " + err.Error()) // strings can't fail
	}
	return request{body, wire(body, credentials)}
}

const (
	boardSize = 50
	// boards is how many different price boards V3 asks for in turn.
	boards = 400
)

// newWorkloads makes the requests, the same in every run over the same venue.
func newWorkloads(listing *listing) []workload {
	random := rand.New(rand.NewPCG(1, 2))
	prices := make([]request, boards)
	for i := range prices {
		random.Shuffle(len(listing.tokens), func(i, j int) {
			listing.tokens[i], listing.tokens[j] = listing.tokens[j], listing.tokens[i]
		})
		prices[i] = newRequest(pricesQuery, "Prices", map[string]any{"ids": listing.tokens[:boardSize]}, "")
	}
	return []workload{
		{"W1", "the same portfolio of 50 positions", []request{newRequest(portfolioQuery, "Portfolio", map[string]any{"address": holder}, holderCredentials)}},
		{"W2", "the same market page with two books of 20 levels a side", []request{newRequest(marketQuery, "MarketPage", map[string]any{"id": listing.market}, "")}},
		{"W3", "the same 50 prices", prices[:1]},
		{"V3", fmt.Sprintf("50 prices, %d sets in turn", boards), prices},
		{"W4", "{ __typename }", []request{newRequest(typenameQuery, "", nil, "")}},
	}
}

// listing is what the workloads need to know of the venue.
type listing struct {
	tokens []string
	market string // with two tokens whose books are deep
}

// newListing reads the open markets from oddsgraph.
func newListing(ctx context.Context, url string) (*listing, error) {
	const document = `query ($after: String) {
  searchMarkets(filter: { status: [OPEN] }, sort: VOLUME, first: 100, after: $after) {
    nodes { marketId tokens { tokenId } }
    pageInfo { hasNextPage endCursor }
  }
}`
	l := &listing{}
	var after *string
	for {
		var page struct {
			SearchMarkets struct {
				Nodes []struct {
					MarketID string
					Tokens   []struct{ TokenID string }
				}
				PageInfo struct {
					HasNextPage bool
					EndCursor   *string
				}
			}
		}
		if err := ask(ctx, url, newRequest(document, "", map[string]any{"after": after}, ""), &page); err != nil {
			return nil, err
		}
		for _, m := range page.SearchMarkets.Nodes {
			for _, t := range m.Tokens {
				l.tokens = append(l.tokens, t.TokenID)
			}
			if l.market == "" && len(m.Tokens) == 2 {
				if deep, err := isDeep(ctx, url, m.MarketID); err != nil {
					return nil, err
				} else if deep {
					l.market = m.MarketID
				}
			}
		}
		if !page.SearchMarkets.PageInfo.HasNextPage {
			break
		}
		after = page.SearchMarkets.PageInfo.EndCursor
	}
	if l.market == "" || len(l.tokens) < 2*boardSize {
		return nil, errors.New("the venue has too few markets")
	}
	return l, nil
}

// isDeep reports whether all books of a market have 20 levels a side.
func isDeep(ctx context.Context, url, marketID string) (bool, error) {
	var page struct {
		Market struct {
			Tokens []struct {
				Orderbook struct{ Bids, Asks []struct{} }
			}
		}
	}
	if err := ask(ctx, url, newRequest(marketQuery, "MarketPage", map[string]any{"id": marketID}, ""), &page); err != nil {
		return false, err
	}
	for _, t := range page.Market.Tokens {
		if len(t.Orderbook.Bids) < 20 || len(t.Orderbook.Asks) < 20 {
			return false, nil
		}
	}
	return true, nil
}

// ask sends a request and reads the data of its answer.
func ask(ctx context.Context, url string, r request, data any) error {
	b, err := post(ctx, url+"/graphql", r.body, "")
	if err != nil {
		return err
	}
	return readData(b, data)
}

// readData reads the data of an answer without errors.
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
