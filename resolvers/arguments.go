package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
)

// These are limits and defaults of arguments: numbers of ids, of rows in a page, and of days.
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

// pageSize returns the checked value of an argument first. It returns otherwise if the client sent null. If the client omits
// the argument, the schema provides the default.
func pageSize(first *int, otherwise, limit int) (int, error) {
	if first == nil {
		return otherwise, nil
	}
	if *first < 1 || *first > limit {
		return 0, badInput("first is %d; it must be 1 to %d", *first, limit)
	}
	return *first, nil
}

// checkNumber returns an error if a list has more than maxIDs ids.
func checkNumber(argument string, ids []string) error {
	if len(ids) > maxIDs {
		return badInput("%s holds %d ids; at most %d are accepted", argument, len(ids), maxIDs)
	}
	return nil
}

// oneOf returns the value of the argument that is set; first reports whether it is the first one. It returns an error unless
// exactly one of the two arguments is set and contains a valid id.
func oneOf(name1 string, value1 *string, name2 string, value2 *string) (first bool, value string, err error) {
	switch {
	case (value1 == nil) == (value2 == nil):
		return false, "", badInput("give exactly one of %s and %s", name1, name2)
	case value1 != nil:
		return true, *value1, market.CheckID(*value1)
	default:
		return false, *value2, market.CheckID(*value2)
	}
}

// addErrorAt reports the error of one element of the list that the current field returns.
func addErrorAt(ctx context.Context, index int, err error) { exec.ReportAt(ctx, index, err) }

// addLeftOut reports an error for each row that is missing from the current field's list because it could not be read.
func addLeftOut(ctx context.Context, rows market.LeftOut) {
	for _, err := range rows {
		exec.Report(ctx, err)
	}
}

// valueOr returns *p, or otherwise if p is nil.
func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
