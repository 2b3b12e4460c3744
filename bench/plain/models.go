// Package plain is a simple GraphQL server, such as a developer might write first. It uses gqlgen's defaults and dataloaders
// for each request. It calls the venue directly and keeps no data between requests. It answers the documents of the benchmark,
// so that oddsgraph can be compared with it.
//
// The generated code is in the directory graph, which is not committed. The file main.go connects it to this package. The command
// go build ./... ignores main.go because of a build constraint.
package plain

//go:generate go tool gqlgen generate

import (
	"encoding/json"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
)

// The models. The JSON names are those of the venue. The Go names are those of the GraphQL schema.
type (
	// User is an account.
	User struct{ Address string }

	// PositionConnection is a list of positions.
	PositionConnection struct {
		Nodes []*Position `json:"positions"`
	}

	// Position is the number of shares of a token that an account has.
	Position struct {
		MarketID string      `json:"marketId"`
		TokenID  string      `json:"tokenId"`
		Outcome  string      `json:"outcome"`
		Size     json.Number `json:"size"`
		AvgPrice json.Number `json:"avgPrice"`
	}

	// Market is a question on whose outcomes users can bet.
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

	// Orderbook has the bids and asks for a token.
	Orderbook struct {
		TokenID string            `json:"tokenId"`
		Bids    []*OrderbookLevel `json:"bids"`
		Asks    []*OrderbookLevel `json:"asks"`
	}

	// OrderbookLevel is a price and the total size of the orders at this price.
	OrderbookLevel struct {
		Price json.Number `json:"price"`
		Size  json.Number `json:"size"`
	}
)

// MarshalDecimal writes the venue's number as a string with the same digits.
func MarshalDecimal(n json.Number) graphql.Marshaler { return graphql.MarshalString(n.String()) }

// UnmarshalDecimal reads a decimal number from a string.
func UnmarshalDecimal(v any) (json.Number, error) {
	s, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%T is not a decimal", v)
	}
	return json.Number(s), nil
}
