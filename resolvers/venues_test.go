package resolvers

import (
	"context"
	"slices"
	"strings"
	"testing"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

const wallet = "0x1111111111111111111111111111111111111111"

// twoVenues returns the resolvers of a process with a private first venue and a further venue b. They record the credentials of each
// call of Scope.
func twoVenues(scopes *[]*market.Credentials) *Resolver {
	scope := func(ctx context.Context, _ market.Address) string {
		*scopes = append(*scopes, request.CredentialsFrom(ctx))
		return ""
	}
	return &Resolver{
		Names:  market.Names{"", "b"},
		Venues: []Venue{{Title: "generic", Scope: scope}, {Name: "b", Title: "b", Scope: scope, MarketID: strings.ToUpper, PublicAccounts: true}},
	}
}

func TestIDsOfVenues(t *testing.T) {
	r := twoVenues(new([]*market.Credentials))
	for _, c := range []struct {
		venue *string
		want  market.Address
	}{{nil, wallet}, {new("generic"), wallet}, {new("b"), "b:" + wallet}} {
		a, err := r.account(wallet, c.venue)
		again, err2 := r.parseAddress(string(a))
		if err != nil || err2 != nil || a != c.want || again != c.want {
			t.Errorf("the account at %v is %q, %v, in a global id %q, %v", c.venue, a, err, again, err2)
		}
	}
	if _, err := r.account(wallet, new("c")); err == nil || err.Error() != `BAD_USER_INPUT: there is no venue "c"; the venues are: generic, b` {
		t.Errorf("an account of an unknown venue: %v", err)
	}
	for _, id := range []string{"b:x", "c:" + wallet, "b:b:" + wallet} {
		if a, err := r.parseAddress(id); err == nil {
			t.Errorf("%q is the account %q", id, a)
		}
	}
	if got := r.marketIDs([]string{"x", "b:x", "c:x"}); !slices.Equal(got, []string{"x", "b:X", "c:x"}) {
		t.Errorf("market ids are %q", got)
	}
	if _, err := r.sumOf(&market.Event{EventID: "b:e", LeftOut: make(market.LeftOut, 1)}, nil); err == nil || !strings.HasPrefix(err.Error(), "b: ") {
		t.Errorf("a sum over markets of which one could not be read: %v, want an error of the venue b", err)
	}
	if r.venueName("x") != nil || *r.venueName("b:x") != "b" {
		t.Errorf("the venues are %v and %v", r.venueName("x"), r.venueName("b:x"))
	}
}

// TestNoCredentialsForFurtherVenue follows an account of a further venue with the credentials of a client of the first one.
func TestNoCredentialsForFurtherVenue(t *testing.T) {
	var scopes []*market.Credentials
	r := twoVenues(&scopes)
	mine, err := market.ParseCredentials([]byte(`{"key":"k"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		account, accepted market.Address
		want              *market.Credentials
	}{{wallet, wallet, mine}, {"b:" + wallet, "", nil}} {
		ctx, s := WithStream(request.WithCredentials(t.Context(), mine), nil)
		if topic, got := r.accountTopic(ctx, c.account); got != c.want || topic.ID != string(c.account) {
			t.Errorf("%s is watched as %+v, with credentials: %v", c.account, topic, got != nil)
		}
		if s.Account() != c.accepted || scopes[len(scopes)-1] != c.want {
			t.Errorf("%s: a value of the stream accepts credentials for %q; its scope has credentials: %v", c.account, s.Account(), scopes[len(scopes)-1] != nil)
		}
		if denied := r.checkAccess(t.Context(), c.account) != nil; denied != (c.want != nil) {
			t.Errorf("%s is denied to a client without credentials: %v", c.account, denied)
		}
	}
}

// TestStreamStatusOfVenue checks that a client can follow the stream of each venue.
func TestStreamStatusOfVenue(t *testing.T) {
	r := *threeVenues
	r.Status = func(context.Context) model.ServiceStatus {
		of := func(i int) model.StreamStatus { return model.StreamStatus{Connections: i} }
		return model.ServiceStatus{Stream: of(0), Venues: []model.ServiceVenue{{Stream: of(0)}, {Stream: of(1)}, {Stream: of(2)}}}
	}
	for i, venue := range []*string{nil, new("b"), new("c")} {
		ctx, stream := WithStream(t.Context(), nil)
		events, err := r.Subscription().StreamStatusChanged(ctx, venue)
		if err != nil {
			t.Fatal(err)
		}
		stream.Run(func(StreamEvent) bool {
			if got := <-events; got.Connections != i {
				t.Errorf("venue %d: got the status of venue %d", i, got.Connections)
			}
			return false
		})
	}
	if _, err := r.Subscription().StreamStatusChanged(t.Context(), new("d")); market.CodeOf(err) != market.CodeBadUserInput {
		t.Errorf("an unknown venue: got %v, want BAD_USER_INPUT", err)
	}
}
