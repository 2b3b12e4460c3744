// Package plain is a simple GraphQL server, such as a developer might write first. It uses gqlgen's defaults and dataloaders
// for each request. It calls the venue directly and keeps no data between requests.
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

// The models have the names of the schema. The tags are names of the venue that differ.
type (
	User               struct{ Address string }
	PositionConnection struct {
		Nodes []*Position `json:"positions"`
	}
	Position struct {
		MarketID, TokenID, Outcome string
		Size, AvgPrice             json.Number
	}
	Market struct {
		MarketID, Slug, Question, Category string
		Tokens                             []*Token `json:"outcomes"`
	}
	Token      struct{ TokenID, Outcome string }
	TokenPrice struct {
		TokenID string
		Price   json.Number
	}
	Orderbook struct {
		TokenID    string
		Bids, Asks []*OrderbookLevel
	}
	OrderbookLevel struct{ Price, Size json.Number }
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
