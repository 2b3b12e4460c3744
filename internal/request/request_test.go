package request_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

func TestCredentials(t *testing.T) {
	c, err := market.ParseCredentials([]byte(`{"apiKey":"hunter2"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := request.WithCredentials(t.Context(), c)
	if got := request.CredentialsFrom(ctx); got != c {
		t.Errorf("CredentialsFrom returned %p, want the credentials of WithCredentials", got)
	}
	if text := fmt.Sprintf("%v %+v %#v", ctx, ctx, ctx); strings.Contains(text, "hunter2") {
		t.Errorf("the context prints the credentials: %s", text)
	}
	if request.CredentialsFrom(t.Context()) != nil || request.CredentialsFrom(request.WithCredentials(t.Context(), nil)) != nil {
		t.Error("an anonymous caller has credentials")
	}
}

func TestEndpointsOfUsers(t *testing.T) {
	user := []upstream.Endpoint{upstream.EndpointBalance, upstream.EndpointPositions, upstream.EndpointOrders, upstream.EndpointTrades, upstream.EndpointHistory}
	for e := upstream.EndpointPrices; e <= upstream.EndpointHistory; e++ {
		if e.User() != slices.Contains(user, e) {
			t.Errorf("User of endpoint %s returned %v, want %v", e, e.User(), !e.User())
		}
	}
}

func TestDependencies(t *testing.T) {
	until := time.Unix(5, 0)
	h, other := reads.NewHandle(until), reads.NewHandle(until)
	d := &request.Dependencies{}
	ctx := request.With(t.Context(), func(r *request.Request) { r.Respond(d) })
	if request.From(ctx).Dependencies != d {
		t.Error("the context has other dependencies")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { d.Record(h); d.Record(nil); d.Record(other); h.Invalidate(); _, _ = d.Snapshot() })
	}
	wg.Wait()
	if _, ok := d.Snapshot(); ok {
		t.Error("Snapshot returned true after a read without a handle")
	}
	s, _ := d.Snapshot()
	if got := s.Handles; len(got) != 16 || !slices.Contains(got, h) || !slices.Contains(got, other) || s.Renewals != 16*until.UnixNano() || !s.FreshUntil.Equal(until) {
		t.Errorf("got snapshot %+v, want each of two handles eight times, with the fresh time of each", s)
	}
}

func TestSnapshot(t *testing.T) {
	d := &request.Dependencies{}
	ctx := request.With(t.Context(), func(r *request.Request) { r.Respond(d) })
	s, ok := d.Snapshot()
	if !ok || s.Personal || !s.Until.IsZero() || len(s.Handles) != 0 {
		t.Errorf("without records: got snapshot %+v, %v; want an empty one", s, ok)
	}
	h, early := reads.NewHandle(time.Unix(9, 0)), time.Unix(5, 0)
	d.Record(h)
	d.Until(early.Add(time.Second))
	d.Until(early)
	d.Until(early.Add(time.Minute))
	if s, ok = d.Snapshot(); !ok || s.Personal || !s.Until.Equal(early) || len(s.Handles) != 1 || s.Handles[0] != h {
		t.Errorf("got snapshot %+v, %v; want the recorded handle and the earliest time", s, ok)
	}
	request.CredentialsFrom(ctx)
	if s, ok = d.Snapshot(); !ok || !s.Personal {
		t.Errorf("after CredentialsFrom: got snapshot %+v, %v; want a personal snapshot", s, ok)
	}
}

func TestNoDependencies(t *testing.T) {
	none := request.From(t.Context()).Dependencies
	none.Record(reads.NewHandle(time.Unix(9, 0)))
	none.Until(time.Unix(5, 0))
	if _, ok := none.Snapshot(); ok || none != nil || request.CredentialsFrom(t.Context()) != nil {
		t.Error("a context without dependencies has a snapshot, or credentials")
	}
}
