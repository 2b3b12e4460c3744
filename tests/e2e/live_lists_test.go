package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// subListed selects only fields whose values do not depend on when the service executes an event.
const subListed = `{ reason previousPrice price { tokenId price basis timestamp freshness { source stale } } token { tokenId market { marketId } } } }`

// rawSubscription is a subscription on a separate socket. It keeps the bytes of its events.
type rawSubscription struct {
	*socket
	ids []string
	// byToken maps a token to the payloads of its events, in the order in which they came.
	byToken map[string][]string
}

// rawSubscribe subscribes to a list of tokens. If literal is true, the list is written in the document. Otherwise the list is in a
// variable. The service splits only a list in a variable into one execution for each token.
func (s *service) rawSubscribe(t testing.TB, ids []string, literal bool) *rawSubscription {
	t.Helper()
	k := s.dialUnread(t, anonymous)
	payload := vars{"query": "subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) " + subListed, "variables": vars{"ids": ids}}
	if literal {
		payload = vars{"query": "subscription { priceChanged(tokenIds: " + asJSON(ids) + ") " + subListed}
	}
	k.send(t, frame{ID: "1", Type: "subscribe", Payload: json.RawMessage(asJSON(payload))})
	return &rawSubscription{k, ids, map[string][]string{}}
}

// read reads from the socket until each of the given tokens has at least the given number of events.
func (r *rawSubscription) read(t testing.TB, tokens []string, events int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for slices.ContainsFunc(tokens, func(id string) bool { return len(r.byToken[id]) < events }) {
		f, err := r.socket.read(ctx)
		if err != nil || f.Type != "next" {
			t.Fatalf("got the message %+v and the error %v, want an event", f, err)
		}
		ev := eventOf(f.Type, f.Payload)
		id := text(ev.data, "priceChanged.token.tokenId")
		if len(ev.errors) > 0 || !slices.Contains(r.ids, id) {
			t.Fatalf("the list %q got the event %s", r.ids, f.Payload)
		}
		r.byToken[id] = append(r.byToken[id], string(f.Payload))
	}
}

func last(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// randomList returns 8 random elements of the list ids, and one of them a second time.
func randomList(random *rand.Rand, ids []string) []string {
	list := make([]string, 8, 9)
	for i, at := range random.Perm(len(ids))[:8] {
		list[i] = ids[at]
	}
	return append(list, list[random.IntN(8)])
}

// TestListsShareTheWorkForEachToken checks that lists with a common token share one execution of this token. The events of a list
// must have the same bytes as the events of a list that is not split. When the clients have disconnected, the executions must end.
func TestListsShareTheWorkForEachToken(t *testing.T) {
	s := startLive(t, "--demo-markets=600")
	s.waitForStream(t)
	tokens := s.openTokens(500)
	if len(tokens) < 400 {
		t.Fatalf("the venue has %d open tokens, want at least 400", len(tokens))
	}
	random := rand.New(rand.NewPCG(1, 2))
	const clients, movedTokens = 30, 4
	anchor := s.rawSubscribe(t, tokens, true) // keeps all tokens subscribed on the stream, so that the clients start with streamed values
	for _, id := range tokens {
		for events := 1; !strings.Contains(last(anchor.byToken[id]), `"source":"STREAM"`); events++ {
			anchor.read(t, []string{id}, events)
		}
	}
	routines, executions := goroutines(t), s.executions()
	var all []*rawSubscription
	used := map[string]bool{}
	for i := range clients {
		list := randomList(random, tokens)
		copy(list, tokens[:movedTokens]) // each client follows all tokens whose prices move
		list[8] = list[0]
		for _, id := range list {
			used[id] = true
		}
		all = append(all, s.rawSubscribe(t, list, false))
		all[i].read(t, list, 1)
	}
	if got := s.executions() - executions; got != uint64(len(used)) {
		t.Errorf("got %d executions for %d lists, want one for each of the %d tokens in these lists", got, clients, len(used))
	}
	unsplit := make([]*rawSubscription, 3)
	for i := range unsplit {
		unsplit[i] = s.rawSubscribe(t, all[i].ids, true)
		unsplit[i].read(t, unsplit[i].ids, 1)
	}
	const rounds = 5
	before := s.API.Stats().Groups.Events
	for round := range rounds {
		for _, id := range tokens[:movedTokens] {
			s.move(t, id)
		}
		for _, r := range slices.Concat(all, unsplit) {
			r.read(t, tokens[:movedTokens], 2+round)
		}
	}
	if got := s.API.Stats().Groups.Events - before; got > rounds*movedTokens*uint64(2+len(unsplit)) {
		t.Errorf("%d events were executed for %d changes, want at most %d for each change: one for all split lists, and one for each other list", got, rounds*movedTokens, 2+len(unsplit))
	}
	for _, r := range slices.Concat(all, unsplit) {
		for _, id := range tokens[:movedTokens] {
			if got, want := r.byToken[id], all[0].byToken[id]; !slices.Equal(got[1:], want[1:]) {
				t.Fatalf("token %s: got %q, want %q", id, got, want)
			}
		}
	}
	for i, r := range unsplit {
		for _, id := range r.ids {
			if !slices.Contains(tokens[:movedTokens], id) && !slices.Equal(r.byToken[id], all[i].byToken[id]) {
				t.Errorf("token %s: got %q, want %q", id, all[i].byToken[id], r.byToken[id])
			}
		}
	}
	for _, r := range slices.Concat(all, unsplit) {
		r.close()
	}
	eventually(t, "only the anchor is left", func() bool { g := s.API.Stats().Groups; return g.Groups == 1 && g.Members == 1 })
	if got := goroutines(t); got > routines+20 { // idle connections to the venue may have up to 20 goroutines
		t.Errorf("%d goroutines run after the clients have left, want at most 20 more than the %d before the clients came", got, routines)
	}
}

// TestListsWithUnknownIDs checks lists with unknown ids or invalid arguments. A split list must get the same errors, and as many
// events, as a list that is not split.
func TestListsWithUnknownIDs(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	good := s.openTokens(2)
	outcome := func(ids []string, perSecond int, literal bool) (errors []string, events int, ended bool) {
		query, variables := "subscription($ids: [String!]!, $n: Int) { priceChanged(tokenIds: $ids, maxPerSecond: $n) { reason token { tokenId } } }", vars{"ids": ids}
		if literal {
			query, variables = strings.ReplaceAll(query, "tokenIds: $ids", "tokenIds: "+asJSON(ids)), vars{}
			query = strings.Replace(query, "$ids: [String!]!, ", "", 1)
		}
		if perSecond != 0 {
			variables["n"] = perSecond
		}
		sub := s.dial(t, anonymous).subscribe(t, query, variables)
		for len(errors)+events < max(len(ids), 1) && !ended { // one event or error for each id
			ev := sub.next(t)
			for _, err := range ev.errors {
				errors = append(errors, fmt.Sprintf("%v %+v", ev.refused, err))
			}
			if ended = ev.ended; ev.data != nil {
				events++
			}
		}
		if !ended {
			sub.stop()
		}
		slices.Sort(errors)
		return errors, events, ended
	}
	for name, test := range map[string]struct {
		ids       []string
		perSecond int
	}{
		"one unknown":            {ids: []string{good[0], "999999999999", good[1]}},
		"all unknown":            {ids: []string{"999999999999", "999999999998"}},
		"one unknown alone":      {ids: []string{"999999999999"}},
		"an invalid id":          {ids: []string{good[0], "no id\n"}},
		"an empty list":          {ids: []string{}},
		"a rate that is too big": {ids: good, perSecond: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			errors, events, ended := outcome(test.ids, test.perSecond, false)
			wantErrors, wantEvents, wantEnded := outcome(test.ids, test.perSecond, true)
			if events != wantEvents || ended != wantEnded || len(errors) != len(wantErrors) {
				t.Errorf("got %q, %d events, ended %v; want %q, %d events, ended %v", errors, events, ended, wantErrors, wantEvents, wantEnded)
			}
			if name != "all unknown" && !slices.Equal(errors, wantErrors) { // if all ids are unknown, the error may be about any id
				t.Errorf("got the errors %q, want %q", errors, wantErrors)
			}
		})
	}
}

// TestListsThatAreNotSplit checks that the service splits a list only if the list is a variable of priceChanged and the request has
// no credentials.
func TestListsThatAreNotSplit(t *testing.T) {
	s := startLive(t)
	s.waitForStream(t)
	ids := s.openTokens(3)
	const price = "{ reason token { tokenId } } }"
	for name, test := range map[string]struct {
		query       string
		credentials string
		want        uint64
	}{
		"split":                  {"subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) " + price, anonymous, 3},
		"a caller's credentials": {"subscription($ids: [String!]!) { priceChanged(tokenIds: $ids) " + price, keyOf50, 1},
		"trades":                 {"subscription($ids: [String!]!) { tradesAdded(tokenIds: $ids) { reason } }", anonymous, 1},
		"a list in the document": {"subscription { priceChanged(tokenIds: " + asJSON(ids) + ") " + price, anonymous, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.executions()
			variables := vars{}
			if strings.Contains(test.query, "$ids") {
				variables["ids"] = ids
			}
			sub := s.dial(t, test.credentials).subscribe(t, test.query, variables)
			sub.reason(t, "INITIAL")
			if got := s.executions() - before; got != test.want {
				t.Errorf("got %d executions, want %d", got, test.want)
			}
		})
	}
}

// TestListsBeyondTheBound checks that the service stops splitting lists when split lists have twice as many executions as
// --stream-topics. Each later list must have one execution, and still get events.
func TestListsBeyondTheBound(t *testing.T) {
	t.Parallel()
	s := startLive(t, "--stream-topics=8")
	s.waitForStream(t)
	tokens := s.openTokens(24)
	before := s.executions()
	for i, list := range slices.Collect(slices.Chunk(tokens, 4)) {
		s.rawSubscribe(t, list, false).read(t, list, 1)
		want := uint64(4 * (i + 1))
		if i >= 4 {
			want = 16 + uint64(i-3)
		}
		if got := s.executions() - before; got != want {
			t.Errorf("%d lists of 4 tokens have %d executions, want %d", i+1, got, want)
		}
	}
}
