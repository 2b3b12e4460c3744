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

var errRoom = errors.New("no more room")

// room is an exec.Room. most is the maximum size of a response in bytes. Grow grants up to step bytes more than requested. asked
// counts the calls of Grow.
type room struct{ step, most, asked int }

func (r *room) Grow(size int) (int, error) {
	r.asked++
	if size > r.most {
		return 0, errRoom
	}
	return min(size+r.step, r.most), nil
}

// TestRoom checks that a limit does not change a response that is small enough. A larger response must become null with one error
// that has a path and a location.
func TestRoom(t *testing.T) {
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
		for most := 1; all != nil && most < 4*total; most += 1 + most/2 {
			data, errs := op.Execute(ctx, variables, []byte("before"), &room{step: 1 + r.IntN(100), most: most})
			got := resultOf([]byte(strings.TrimPrefix(string(data), "before")), errs)
			if len(errs) == 0 || !errors.Is(errs[0].Err, errRoom) {
				if fitted++; !got.equal(want) || total > most {
					t.Fatalf("seed %d: in %d bytes the response of %d is %v instead of %v", seed, most, total, got, want)
				}
				continue
			}
			if refused++; got.data != "null" || len(errs) != 1 || len(errs[0].Path()) == 0 || len(errs[0].Locations()) != 1 {
				t.Fatalf("seed %d: %s, %v", seed, got.data, errs)
			}
			if total <= most && len(want.troubles) == 0 { // with errors, a null may have replaced a part that exceeded the limit
				t.Fatalf("seed %d: %d bytes do not fit into %d", seed, total, most)
			}
		}
	}
	if fitted < 20 || refused < 20 {
		t.Errorf("%d responses found room, %d did not", fitted, refused)
	}
}

// TestFullResponseEndsEarly checks that an execution stops when its response exceeds the limit.
func TestFullResponseEndsEarly(t *testing.T) {
	b := newBoth(t, &universe{})
	aliases := make([]string, 200)
	for i := range aliases {
		aliases[i] = "a" + strings.Repeat("x", i) + ": __typename"
	}
	o := b.mustParse("{ first: __schema { description } "+strings.Join(aliases, " ")+" }", nil)
	room := &room{step: 100, most: 1000}
	data, errs := o.executable.Execute(b.ctx, nil, nil, room)
	if string(data) != "null" || len(errs) != 1 || !errors.Is(errs[0].Err, errRoom) {
		t.Fatalf("%.100s %v", data, errs)
	}
	if at := errs[0].Path().String(); !slices.ContainsFunc(aliases, func(a string) bool { return strings.HasPrefix(a, at+":") }) || len(at) > 60 {
		t.Errorf("the response was refused at %s", at)
	}
	if room.asked > 15 || cap(data) > 4000 {
		t.Errorf("%d questions, and a buffer of %d bytes", room.asked, cap(data))
	}
}
