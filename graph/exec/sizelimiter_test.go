package exec_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/validator"
)

var errTooLarge = errors.New("the response is too large")

// fakeLimiter is an exec.SizeLimiter. limit is the maximum size of a response in bytes. Grow grants up to step bytes more than
// requested. calls is the number of calls of Grow.
type fakeLimiter struct{ step, limit, calls int }

func (r *fakeLimiter) Grow(size int) (int, error) {
	r.calls++
	if size > r.limit {
		return 0, errTooLarge
	}
	return min(size+r.step, r.limit), nil
}

// TestSizeLimit checks that a limit does not change a response that is small enough. A larger response must become null with one
// error that has a path and a location.
func TestSizeLimit(t *testing.T) {
	const errorSize = 1 << 10
	ctx, fitted, refused := context.Background(), 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := newSamples(&world{seed: seed, trouble: r.IntN(40)})
		w := &writer{Rand: r, schema: s.schema, values: sampleValues}
		text, given := w.document()
		doc, invalid := gqlparser.LoadQueryWithRules(s.schema, text, nil)
		if invalid != nil {
			continue
		}
		variables, err := validator.VariableValues(s.schema, doc.Operations[0], given)
		if err != nil {
			continue
		}
		op := s.compiler.Operation(doc, doc.Operations[0], func(int) {})
		all, errs := op.Execute(ctx, variables, nil, nil)
		want := resultOf(all, errs)
		total := len(all) + errorSize*len(want.troubles)
		for limit := 1; all != nil && limit < 4*total; limit += 1 + limit/2 {
			data, errs := op.Execute(ctx, variables, []byte("before"), &fakeLimiter{step: 1 + r.IntN(100), limit: limit})
			got := resultOf([]byte(strings.TrimPrefix(string(data), "before")), errs)
			if len(errs) == 0 || !errors.Is(errs[0].Err, errTooLarge) {
				if fitted++; !got.equal(want) || total > limit {
					t.Fatalf("seed %d: with a limit of %d bytes, the response of %d bytes is %v, want %v", seed, limit, total, got, want)
				}
				continue
			}
			if refused++; got.data != "null" || len(errs) != 1 || len(errs[0].Path()) == 0 || len(errs[0].Locations()) != 1 {
				t.Fatalf("seed %d: a refused response has the data %s and the errors %v, want null and one error with a path and a location", seed, got.data, errs)
			}
			// A response with errors may have exceeded the limit before null replaced a part of it.
			if total <= limit && len(want.troubles) == 0 {
				t.Fatalf("seed %d: a response of %d bytes is refused with a limit of %d bytes", seed, total, limit)
			}
		}
	}
	if fitted < 20 || refused < 20 {
		t.Errorf("%d responses were within the limit and %d were refused, want at least 20 of each", fitted, refused)
	}
}

// TestFullResponseEndsEarly checks that an execution stops when its response exceeds the limit.
func TestFullResponseEndsEarly(t *testing.T) {
	b := newExecutorPair(t, &universe{})
	aliases := make([]string, 200)
	for i := range aliases {
		aliases[i] = "a" + strings.Repeat("x", i) + ": __typename"
	}
	o := b.mustParse("{ first: __schema { description } "+strings.Join(aliases, " ")+" }", nil)
	limiter := &fakeLimiter{step: 100, limit: 1000}
	data, errs := o.executable.Execute(b.ctx, nil, nil, limiter)
	if string(data) != "null" || len(errs) != 1 || !errors.Is(errs[0].Err, errTooLarge) {
		t.Fatalf("got the data %.100s and the errors %v, want null and the error of limiter", data, errs)
	}
	if path := errs[0].Path().String(); !slices.ContainsFunc(aliases, func(a string) bool { return strings.HasPrefix(a, path+":") }) || len(path) > 60 {
		t.Errorf("the error has the path %s, want one of the first aliases", path)
	}
	if limiter.calls > 15 || cap(data) > 4000 {
		t.Errorf("Execute called Grow %d times and used a buffer of %d bytes, want at most 15 calls and 4000 bytes", limiter.calls, cap(data))
	}
}
