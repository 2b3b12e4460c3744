package resolvers

import (
	"context"

	"oddsgraph/graph/exec"
	"oddsgraph/internal/market"
)

// The bounds of arguments.
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

// pageSize checks a first argument, whose default the schema has set unless the client sent null.
func pageSize(first *int, otherwise, limit int) (int, error) {
	if first == nil {
		return otherwise, nil
	}
	if *first < 1 || *first > limit {
		return 0, badInput("first is %d; it must be 1 to %d", *first, limit)
	}
	return *first, nil
}

// checkNumber refuses a list of too many identifiers.
func checkNumber(argument string, ids []string) error {
	if len(ids) > maxIDs {
		return badInput("%s holds %d ids; at most %d are accepted", argument, len(ids), maxIDs)
	}
	return nil
}

// oneOf returns the argument that is set of two, of which exactly one must be.
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

// addErrorAt reports that one element of the list that the present field returns could not be read.
func addErrorAt(ctx context.Context, index int, err error) { exec.ReportAt(ctx, index, err) }

// addLeftOut reports the rows that are missing from the list of the present field, since the venue's answer held them in no
// form that can be read.
func addLeftOut(ctx context.Context, rows market.LeftOut) {
	for _, err := range rows {
		exec.Report(ctx, err)
	}
}

// or returns what p points to, or otherwise where p is nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
