package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// The GraphQL documents of the workloads.
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

// holder is the address of the demo account with 50 positions.
const holder = "0x2222222222222222222222222222222222222222"

var (
	holderCredentials = encode(`{"apiKey":"demo-50","secret":"demo","passphrase":"demo"}`)
	anyCredentials    = encode(`{"apiKey":"demo","secret":"demo","passphrase":"demo"}`)
)

func encode(credentials string) string { return base64.StdEncoding.EncodeToString([]byte(credentials)) }

// workload is a list of requests that clients send in turn.
type workload struct {
	name, about string
	requests    []request
	// tokens are the tokens whose prices move in measurements with moving prices.
	tokens []string
	// varied is true if each request differs from the previous request.
	varied bool
}

// request is a request as a JSON body and as the bytes that are sent, together with its question.
type request struct {
	body, wire []byte
	question
}

// question says which data a request asks for: a portfolio, a market page, prices of tokens, or no data of the venue.
type question struct {
	address, credentials string
	market               string
	tokens               []string
	// fails is true if the response must have one error. hasFailingField is true if the request has failingField in addition to its
	// own fields.
	fails, hasFailingField bool
}

func newRequest(document, operation string, variables map[string]any, q question) request {
	body, err := json.Marshal(struct {
		Query         string         `json:"query"`
		OperationName string         `json:"operationName,omitempty"`
		Variables     map[string]any `json:"variables,omitempty"`
	}{document, operation, variables})
	if err != nil {
		panic("bench: " + err.Error()) // impossible: strings and lists of strings always have a JSON form
	}
	return request{body, wire("/graphql", body, q.credentials), q}
}

func portfolio(address, credentials string) request {
	return newRequest(portfolioQuery, "Portfolio", map[string]any{"address": address}, question{address: address, credentials: credentials})
}

func marketPage(id string) request {
	return newRequest(marketQuery, "MarketPage", map[string]any{"id": id}, question{market: id})
}

func prices(tokens []string) request {
	return newRequest(pricesQuery, "Prices", map[string]any{"ids": tokens}, question{tokens: tokens})
}

// boardSize is the number of prices in a request of W3 or V3.
const boardSize = 50

// variety has the numbers of different requests of the workloads V1 (wallets), V2 (markets) and V3 (boards).
type variety struct{ wallets, markets, boards int }

// newWorkloads returns all workloads. The requests are the same in every run with the same venue.
func newWorkloads(l *listing, v variety) []workload {
	random := rand.New(rand.NewPCG(1, 2))
	tokens := l.tokens()
	boards := make([]request, v.boards)
	for i := range boards {
		random.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
		boards[i] = prices(append([]string(nil), tokens[:boardSize]...))
	}
	pages := make([]request, min(v.markets, len(l.deep)))
	for i := range pages {
		pages[i] = marketPage(l.deep[i].MarketID)
	}
	wallets := make([]request, v.wallets)
	for i := range wallets {
		wallets[i] = portfolio(fmt.Sprintf("0x%016x%024x", random.Uint64(), i), anyCredentials)
	}
	return []workload{
		{name: "W1", about: "the same portfolio of 50 positions", requests: []request{portfolio(holder, holderCredentials)}, tokens: l.held},
		{name: "W2", about: "the same market page with two books of 20 levels a side", requests: pages[:1], tokens: l.deep[0].tokens()},
		{name: "W3", about: "the same 50 prices", requests: boards[:1], tokens: boards[0].tokens},
		{name: "W4", about: "`{ __typename }`", requests: []request{newRequest(typenameQuery, "", nil, question{})}},
		{name: "V1", about: fmt.Sprintf("portfolios of 50 positions of %d wallets in turn", len(wallets)), requests: wallets, varied: true},
		{name: "V2", about: fmt.Sprintf("the pages of %d markets in turn", len(pages)), requests: pages, varied: true},
		{name: "V3", about: fmt.Sprintf("50 prices, %d sets in turn", len(boards)), requests: boards, varied: true},
	}
}
