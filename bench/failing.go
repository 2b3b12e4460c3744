package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// failingField is a field that fails because of an invalid argument. It reads nothing from the venue.
const (
	failingName  = "failing"
	failingField = ` failing: token(tokenId: "x") { orderbook(depth: 0) { hash } }`
	// invalidID can't be the id of a token.
	invalidID = "no,id"
)

// failedData is the data that a response contains for the failing field.
var failedData = object{"orderbook": nil}

// withFailingField returns the request with a failing field in front of all other fields.
func (r request) withFailingField() request {
	var in struct {
		Query, OperationName string
		Variables            map[string]any
	}
	if err := json.Unmarshal(r.body, &in); err != nil {
		panic("bench: " + err.Error()) // impossible: newRequest wrote the body
	}
	in.Query = strings.Replace(in.Query, "{", "{"+failingField, 1)
	q := r.question
	q.fails, q.hasFailingField = true, true
	return newRequest(in.Query, in.OperationName, in.Variables, q)
}

// withInvalidID returns a request for prices with one invalid id.
func (r request) withInvalidID() request {
	tokens := slices.Clone(r.tokens)
	tokens[len(tokens)/2] = invalidID
	out := prices(tokens)
	out.fails = true
	return out
}

// withFailures returns pairs of workloads. Each pair is a workload and the same workload with a failure. A workload of prices is in
// two pairs, because it can fail in two ways.
func withFailures(all []workload) (out []workload) {
	with := func(w workload, failure string, change func(request) request) {
		failing := w
		failing.name += " with " + failure
		failing.requests = make([]request, len(w.requests))
		for i, r := range w.requests {
			failing.requests[i] = change(r)
		}
		out = append(out, w, failing)
	}
	for _, w := range all {
		with(w, "one failing field", request.withFailingField)
		if w.requests[0].question.tokens != nil {
			with(w, fmt.Sprintf("one invalid id of %d", boardSize), request.withInvalidID)
		}
	}
	return out
}

// compareFailures measures each workload without and with a failure, in alternating pairs of short runs of one process. Workloads
// that repeat one request run with the response cache. Workloads that vary their requests run without it.
func compareFailures(ctx context.Context, b *builds, o options) ([]*pairs, error) {
	program, err := b.oddsgraph(ctx)
	if err != nil {
		return nil, err
	}
	noResponseCache, err := withoutResponseCache(ctx, program)
	if err != nil {
		return nil, err
	}
	var out []*pairs
	for _, setting := range []struct {
		name   string
		flags  []string
		varied bool
	}{
		{"cached", warm, false},
		{"executed", slices.Concat(warm, noResponseCache), true},
	} {
		p := &pairs{setting: setting.name, sides: [2]string{"without", "with"}}
		if err := p.measureFailures(ctx, b, o, program, setting.flags, setting.varied); err != nil {
			return nil, fmt.Errorf("failures, %s: %w", setting.name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// measureFailures starts a venue whose prices do not move, and the program in front of the venue. Then it measures the chosen
// workloads.
func (p *pairs) measureFailures(ctx context.Context, b *builds, o options, program string, flags []string, varied bool) error {
	l, err := newPairLab(ctx, b, o, program)
	if err != nil {
		return err
	}
	defer l.stop()
	chosen := newWorkloads(l.listing, o.variety)
	chosen = slices.DeleteFunc(chosen, func(w workload) bool { return w.varied != varied || !o.chooses(w) })
	if l.workloads = withFailures(chosen); len(l.workloads) == 0 {
		return nil
	}
	s, err := l.start(ctx, b, nowServer, program, slices.Concat(l.flags(), flags, o.flags))
	if err != nil {
		return err
	}
	for w := 0; w < len(l.workloads); w += 2 {
		if err := p.add(ctx, l, o, l.workloads[w+1].name, [2]side{{s, w}, {s, w + 1}}); err != nil {
			return err
		}
	}
	return nil
}

// failuresMarkdown returns the tables of the cost of failures.
func failuresMarkdown(all []*pairs, o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Each workload runs without and with a failure: %d alternating pairs of runs of %v in one process, over %d connections.\n\n", o.rounds, o.duration, o.connections)
	for _, p := range all {
		b.WriteString(p.markdown())
	}
	return b.String()
}
