// Package plain is the server that one writes first: gqlgen's defaults, a dataloader per request, straight calls to the
// venue, nothing remembered from one request to the next. It answers the benchmark's documents, so that what oddsgraph
// does beyond it can be counted.
//
// The generated half is in graph/, which is not committed, and main.go ties the two together; both are outside of what
// go build ./... compiles until they are asked for.
package plain

//go:generate go tool gqlgen generate

import (
	"encoding/json"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
)

// The types have the venue's names in JSON and the graph's in Go.
type (
	// User is an account.
	User struct{ Address string }

	// PositionConnection is a list of positions.
	PositionConnection struct {
		Nodes []*Position `json:"positions"`
	}

	// Position is a holding.
	Position struct {
		MarketID string      `json:"marketId"`
		TokenID  string      `json:"tokenId"`
		Outcome  string      `json:"outcome"`
		Size     json.Number `json:"size"`
		AvgPrice json.Number `json:"avgPrice"`
	}

	// Market is what can be bet on.
	Market struct {
		MarketID string   `json:"marketId"`
		Slug     string   `json:"slug"`
		Question string   `json:"question"`
		Category string   `json:"category"`
		Tokens   []*Token `json:"outcomes"`
	}

	// Token is an outcome of a market.
	Token struct {
		TokenID string `json:"tokenId"`
		Outcome string `json:"outcome"`
	}

	// TokenPrice is the price of a token.
	TokenPrice struct {
		TokenID string      `json:"tokenId"`
		Price   json.Number `json:"price"`
	}

	// Orderbook is what a token is bid and asked for.
	Orderbook struct {
		TokenID string            `json:"tokenId"`
		Bids    []*OrderbookLevel `json:"bids"`
		Asks    []*OrderbookLevel `json:"asks"`
	}

	// OrderbookLevel is one line of a book.
	OrderbookLevel struct {
		Price json.Number `json:"price"`
		Size  json.Number `json:"size"`
	}
)

// MarshalDecimal writes the venue's literal as a string.
func MarshalDecimal(n json.Number) graphql.Marshaler { return graphql.MarshalString(n.String()) }

// UnmarshalDecimal reads a string.
func UnmarshalDecimal(v any) (json.Number, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%T is not a decimal", v)
	}
	return json.Number(s), nil
}
