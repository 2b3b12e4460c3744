package resolvers

import (
	"context"
	"fmt"

	"oddsgraph/graph/exec"
	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
)

// The limits and defaults of arguments. maxPage is for connections whose list is read as a whole. maxUpstreamPage is for
// connections whose list the venue sends in pages.
const (
	maxIDs          = 500
	maxPage         = 500
	defaultPage     = 50
	maxUpstreamPage = 100
	maxHistoryDays  = 366
	defaultDays     = 7
)

func badInput(format string, args ...any) error {
	return market.Errorf(market.CodeBadUserInput, format, args...)
}

// pageSize checks the argument "first" and returns its value. It returns fallback if the client sent null. If the client omits
// the argument, the schema provides the default.
func pageSize(first *int, fallback, limit int) (int, error) {
	if first == nil {
		return fallback, nil
	}
	if *first < 1 || *first > limit {
		return 0, badInput("first is %d; it must be 1 to %d", *first, limit)
	}
	return *first, nil
}

func checkIDCount(argument string, ids []string) error {
	if len(ids) > maxIDs {
		return badInput("%s holds %d ids; at most %d are accepted", argument, len(ids), maxIDs)
	}
	return nil
}

// exactlyOne checks that the client sent exactly one of two values. The client can send the value as an argument or as a field of
// an input object. The parameter values contains the arguments, and fields contains the fields of the input object. If the client
// did not send the input object, fields is nil. exactlyOne returns both values; one of them is nil. The parameter names contains
// the names of the two values, and input is the name of the argument with the input object. The errors contain these names.
func exactlyOne[T any](names [2]string, values [2]*T, input string, fields *[2]*T) ([2]*T, error) {
	if fields != nil {
		if values[0] != nil || values[1] != nil {
			return values, badInput("give only one of %s, %s and %s", names[0], names[1], input)
		}
		values = *fields
	}
	if (values[0] == nil) == (values[1] == nil) {
		if fields != nil {
			return values, badInput("%s must have exactly one of %s and %s", input, names[0], names[1])
		}
		return values, badInput("give exactly one of %s and %s", names[0], names[1])
	}
	return values, nil
}

// reference returns a reference to an object by its id or its slug. It returns an error if exactlyOne returns an error, or if
// market.CheckID rejects the id or slug. The parameter name is the name of the GraphQL argument with the id.
func reference[R any](name string, id, slug *string, by *[2]*string, byID, bySlug func(string) R) (ref R, err error) {
	set, err := exactlyOne([2]string{name, "slug"}, [2]*string{id, slug}, "by", by)
	if err != nil {
		return ref, err
	}
	value := set[0]
	if value == nil {
		value, byID = set[1], bySlug
	}
	return byID(*value), market.CheckID(*value)
}

// fillAmount checks the arguments "size" and "amount", and the input object "for", which can contain the size or the amount
// instead. It returns the size and the amount. One of them is nil.
func fillAmount(size, amount *market.Decimal, by *model.FillFor) (*market.Decimal, *market.Decimal, error) {
	var input *[2]*market.Decimal
	if by != nil {
		input = &[2]*market.Decimal{by.Size, by.Amount}
	}
	set, err := exactlyOne([2]string{"size", "amount"}, [2]*market.Decimal{size, amount}, "for", input)
	if err != nil {
		return nil, nil, err
	}
	for _, value := range set {
		if value != nil && value.Sign() <= 0 {
			return nil, nil, badInput("size and amount must be more than 0")
		}
	}
	return set[0], set[1], nil
}

// addLeftOut reports the errors of rows that are missing in the current field's list because they could not be read.
func addLeftOut(ctx context.Context, rows market.LeftOut) {
	for _, err := range rows {
		exec.Report(ctx, err)
	}
}

// textOf returns *p as a text, or "" if p is nil.
func textOf[T any](p *T) string {
	if p == nil {
		return ""
	}
	return fmt.Sprint(*p)
}

func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

// marketIDs returns ids in the form that the venue's data have.
func (r *Resolver) marketIDs(ids []string) []string {
	if len(r.Venues) == 1 && r.Venues[0].MarketID == nil || len(ids) == 0 {
		return ids
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id
		if v := r.venueOf(id); v.MarketID != nil {
			name, own := r.cut(id)
			out[i] = market.Qualify(name, v.MarketID(own))
		}
	}
	return out
}

// bookDepth returns the argument depth of a field with a book, or otherwise if the client left it out.
func bookDepth(depth *int, otherwise int) (int, error) {
	d := valueOr(depth, otherwise)
	if d < 1 || d > queries.MaxBookDepth {
		return 0, badInput("depth is %d; it must be 1 to %d", d, queries.MaxBookDepth)
	}
	return d, nil
}
