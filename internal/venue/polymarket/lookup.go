package polymarket

import (
	"context"
	"slices"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/rest"
)

// maxBisections bounds the number of further calls after Polymarket has refused a list because of one of its ids.
const maxBisections = 12

// lookup reads values by their ids. One call reads several values.
type lookup[T any] struct {
	client   *rest.Client
	endpoint reqctx.Endpoint
	// batch is the greatest number of ids in one call.
	batch int
	// isID reports whether a text has the form of an id. The lookup sends no other texts, because Polymarket cannot know them.
	isID func(string) bool
	// call reads the values of ids with one call.
	call func(ctx context.Context, ids []string, note func(string)) (values[T], error)
}

// isToken reports whether a text has the form of a token id.
func isToken(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isCondition reports whether a text has the form of a condition id.
func isCondition(s string) bool {
	digits, ok := strings.CutPrefix(s, "0x")
	return ok && digits != "" && strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

// read returns a result for each id, in the order of ids. The Value of an unknown id is nil. If every call failed, read also
// returns an error. If only some calls failed, read returns their errors only in the results.
func (l lookup[T]) read(ctx context.Context, ids []string) ([]market.Result[*T], error) {
	results := make(values[T], len(ids))
	var keys []string
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := rest.CheckID(l.endpoint, id); err != nil {
			results[id] = market.Result[*T]{Err: err}
		} else if err := l.client.Refusal(l.endpoint, id); err != nil {
			results[id] = market.Result[*T]{Err: err}
		} else if l.isID(id) {
			keys = append(keys, id)
		}
	}
	lists := slices.Collect(slices.Chunk(keys, l.batch))
	found, errs := make([]values[T], len(lists)), make([]error, len(lists))
	rest.ForEach(len(lists), func(i int) {
		left := maxBisections
		found[i], errs[i] = l.readList(ctx, lists[i], &left)
	})
	for i, list := range lists {
		errs[i] = l.record(list, found[i], errs[i], results)
	}
	out := make([]market.Result[*T], len(ids))
	for i, id := range ids {
		out[i] = results[id]
	}
	if len(lists) == 0 || len(results) > len(keys) {
		return out, nil
	}
	return out, rest.ErrorIfAllFailed(errs)
}

// record writes the results of one list and starts or ends the backoff of its ids.
func (l lookup[T]) record(list []string, found values[T], failed error, results values[T]) error {
	if failed != nil {
		failed = l.client.Record(l.endpoint, failed, list...)
		for _, id := range list {
			results[id] = market.Result[*T]{Err: failed}
		}
		return failed
	}
	var fine []string
	for _, id := range list {
		r := found[id]
		if r.Err != nil {
			r.Err = l.client.Record(l.endpoint, r.Err, id)
		} else {
			fine = append(fine, id)
		}
		results[id] = r
	}
	_ = l.client.Record(l.endpoint, nil, fine...)
	return nil
}

// readList reads ids with one call. If Polymarket refuses the list because of one of the ids, readList reads the two halves of the
// list separately.
func (l lookup[T]) readList(ctx context.Context, ids []string, left *int) (values[T], error) {
	var n rest.Drift
	got, err := l.call(ctx, ids, n.Add)
	l.client.Report(l.endpoint, n)
	switch {
	case err == nil:
		for id, r := range got {
			if r.Err != nil && market.CodeOf(r.Err) == market.CodeInternal { // the functions that read elements return errors without a code
				got[id] = market.Result[*T]{Err: rest.BadElement(l.endpoint, r.Err)}
			}
		}
		return got, nil
	case len(ids) == 1 && market.CodeOf(err) == market.CodeNotFound:
		return nil, nil
	case len(ids) == 1 || !rest.Refused(err) || *left < 2:
		return nil, rest.BadIfNotFound(l.endpoint, err)
	}
	*left -= 2
	half := len(ids) / 2
	out := make(values[T], len(ids))
	for _, part := range [][]string{ids[:half], ids[half:]} {
		found, err := l.readList(ctx, part, left)
		for _, id := range part {
			if r, ok := found[id]; ok || err != nil {
				r.Err = cmpError(err, r.Err)
				out[id] = r
			}
		}
	}
	return out, nil
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// form returns the rest.UnknownForm error of a response. err is the error of the function that read the response. If err is nil,
// form returns nil.
func form(e reqctx.Endpoint, err error) error {
	if err == nil {
		return nil
	}
	return rest.UnknownForm(e, err.Error())
}
