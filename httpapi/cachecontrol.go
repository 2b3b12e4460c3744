package httpapi

import (
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
)

type hint struct {
	maxAge time.Duration
	// private marks data of one user. noStore marks data that must not be cached.
	private, noStore bool
	// dated marks data that changes with each refresh, even if the refreshed values are equal.
	dated bool
}

// hints contains the hints by type name, or by Type.field. If neither a field nor its type has a hint, the field does not change
// the policy.
var hints = map[string]hint{
	"Query.__schema":      {maxAge: 5 * time.Minute},
	"Query.__type":        {maxAge: 5 * time.Minute},
	"Query.searchMarkets": {maxAge: 15 * time.Second},
	"Query.searchEvents":  {maxAge: 15 * time.Second},
	"Category":            {maxAge: 5 * time.Minute},
	"Market":              {maxAge: time.Minute},
	"Event":               {maxAge: time.Minute},
	"Token.outcome":       {maxAge: time.Minute}, // comes from the data of the token's market
	"Token.outcomeKind":   {maxAge: time.Minute},
	"Token.winner":        {maxAge: time.Minute},
	"Market.trades":       {maxAge: 15 * time.Second},
	"Token.trades":        {maxAge: 15 * time.Second},
	"Token.recentPrices":  {noStore: true},
	"Token.sparkline":     {maxAge: time.Minute},
	"Token.change24h":     {maxAge: time.Second},
	"Token.price24hAgo":   {maxAge: time.Minute},
	"PriceHistory":        {maxAge: time.Minute},
	"Candle":              {maxAge: time.Minute},
	"TokenPrice":          {maxAge: time.Second},
	"Spread":              {maxAge: time.Second},
	"Orderbook":           {maxAge: time.Second},
	"FillEstimate":        {maxAge: time.Second},
	"Question":            {maxAge: time.Second},
	"User":                {private: true},
	"Position":            {private: true},
	"Order":               {private: true},
	"ServiceStatus":       {noStore: true},
	"Freshness":           {maxAge: 5 * time.Minute, dated: true},
}

// policy combines the strictest hints of all fields of an operation.
type policy struct {
	hint
	hinted bool // true if any field has a hint
}

func (p *policy) add(name string) {
	h, ok := hints[name]
	if !ok {
		return
	}
	if !p.hinted || h.maxAge < p.maxAge {
		p.maxAge = h.maxAge
	}
	p.private, p.noStore, p.dated, p.hinted = p.private || h.private, p.noStore || h.noStore, p.dated || h.dated, true
}

// policyOf returns the policy of an operation of a valid document. It includes the fields that @skip or @include may exclude,
// because it does not know the values of the variables.
func policyOf(op *ast.OperationDefinition) policy {
	p := &policy{}
	seen := map[*ast.FragmentDefinition]bool{}
	var walk func(ast.SelectionSet)
	walk = func(selection ast.SelectionSet) {
		for _, s := range selection {
			switch s := s.(type) {
			case *ast.Field:
				p.add(s.ObjectDefinition.Name + "." + s.Name)
				p.add(s.Definition.Type.Name())
				walk(s.SelectionSet)
			case *ast.InlineFragment:
				p.add(s.TypeCondition)
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				if !seen[s.Definition] {
					seen[s.Definition] = true
					p.add(s.Definition.TypeCondition)
					walk(s.Definition.SelectionSet)
				}
			}
		}
	}
	walk(op.SelectionSet)
	return *p
}

// header returns the Cache-Control header of a response without errors. identified is true for a request with credentials. The
// response to such a request is private, because any part of it may depend on the credentials.
func (p policy) header(identified bool) string {
	if p.noStore {
		return noStore
	}
	scope := "public"
	if p.private || identified {
		scope = "private"
	}
	return scope + ", max-age=" + strconv.FormatInt(int64(p.maxAge/time.Second), 10)
}

const noStore = "no-store"
