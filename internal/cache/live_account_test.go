package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
	"oddsgraph/internal/request"
)

// TestStreamedAccountIsPrivate checks that only a caller with the credentials of the topic's scope gets a streamed account.
func TestStreamedAccountIsPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(withCredentials(t, "alice"), wallet)}
		positions := []market.Position{{Outcome: "streamed"}}
		session := &reads.Session{}
		c.StreamAccount(session, topic, nil, positions, nil, streamed(time.Now()))
		for secret, want := range map[string]string{"alice": "streamed", "bob": fingerprint(request.CredentialsFrom(withCredentials(t, "bob"))), "": fingerprint(nil)} {
			r, err := readOne(withCredentials(t, secret), c.Positions(), wallet)
			if err != nil || (*r.Value)[0].Outcome != want {
				t.Errorf("credentials %q: got %+v, %v; want outcome %q", secret, r.Value, err, want)
			}
		}
		if r, err := readOne(withCredentials(t, "alice"), c.Orders(), wallet); err != nil || (*r.Value)[0].Outcome != fingerprint(request.CredentialsFrom(withCredentials(t, "alice"))) {
			t.Errorf("orders that were not streamed: got %+v, %v; want the orders of REST", r.Value, err)
		}
		for _, scope := range []string{"", "00", topic.Scope + "00", "zz" + topic.Scope[2:]} {
			bad := topic
			bad.Scope = scope
			before := c.positions.entries.len()
			c.StreamAccount(session, bad, nil, positions, nil, streamed(time.Now()))
			c.StreamStale(bad)
			if c.positions.entries.len() != before {
				t.Errorf("scope %q was accepted", scope)
			}
		}
	})
}

// TestScopeOfTopic checks that the cache key of a topic whose scope comes from Scope equals the cache key of reads with the same
// context and address. Each pair of credentials and address must have its own scope.
func TestScopeOfTopic(t *testing.T) {
	c := open(t, &testVenue{})
	seen := make(map[string]bool)
	for _, secret := range []string{"", "alice", "bob"} {
		for _, a := range []market.Address{wallet, "0x1"} {
			ctx := withCredentials(t, secret)
			scope := c.Scope(ctx, a)
			if scope != c.Scope(ctx, a) || seen[scope] {
				t.Errorf("the scope of %q and %s is not unique", secret, a)
			}
			seen[scope] = true
			key, ok := keyOfTopic(messages.Topic{Channel: messages.ChannelUser, ID: string(a), Scope: scope})
			if !ok || key != c.scope.keyFor(ctx, a) {
				t.Errorf("the scope of %q and %s gives another key", secret, a)
			}
		}
	}
}

// TestStreamedAccountEnds checks that the values of a streamed account are not served after the end of the session or after
// StreamStale.
func TestStreamedAccountEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		ctx := withCredentials(t, "alice")
		topic := messages.Topic{Channel: messages.ChannelUser, ID: string(wallet), Scope: c.Scope(ctx, wallet)}
		balance := &market.Balance{UpdatedAt: at(1)}
		read := func() (fromStream int) {
			t.Helper()
			b, err1 := readOne(ctx, c.Balances(), wallet)
			p, err2 := readOne(ctx, c.Positions(), wallet)
			o, err3 := readOne(ctx, c.Orders(), wallet)
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
			for _, m := range []reads.Meta{b.Meta, p.Meta, o.Meta} {
				if m.Source == market.SourceStream {
					fromStream++
				}
				if m.Stale {
					t.Error("got a stale account")
				}
			}
			return fromStream
		}
		for _, end := range []func(s *reads.Session){
			func(s *reads.Session) { s.End(time.Now()) },
			func(*reads.Session) { c.StreamStale(topic) },
		} {
			session := &reads.Session{}
			c.StreamAccount(session, topic, []market.Order{}, []market.Position{}, balance, streamed(at(1)))
			time.Sleep(time.Hour)
			if n := read(); n != 3 {
				t.Errorf("got %d streamed values, want 3", n)
			}
			end(session)
			if n := read(); n != 0 {
				t.Errorf("after the end: got %d streamed values, want 0", n)
			}
			// The next session streams only positions, so the orders and the balance come from REST.
			c.StreamAccount(&reads.Session{}, topic, nil, []market.Position{}, nil, streamed(at(1)))
			if n := read(); n != 1 {
				t.Errorf("got %d streamed values, want 1", n)
			}
		}
		if len(v.calls()) == 0 {
			t.Error("got no calls")
		}
	})
}
