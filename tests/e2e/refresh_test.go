package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStaleValuesAreRefreshedTogether checks that the refreshes of stale values make no more calls than the first query. A third
// query must make no call.
func TestStaleValuesAreRefreshedTogether(t *testing.T) {
	t.Parallel()
	type page struct {
		query     string
		variables vars
	}
	pages := map[string]func(s *service) page{
		"search of 20 markets": func(*service) page {
			return page{`{ searchMarkets(first: 20, sort: VOLUME) { nodes { tokens { price { price } } } } }`, nil}
		},
		"thirty aliases": func(s *service) page {
			return page{"{ " + aliases(s.openTokens(30), "token(tokenId: %q) { price { price } market { question } }") + " }", nil}
		},
		"open orders": func(*service) page {
			return page{`{ user(address: "` + addressOf50 + `") { orders { nodes { market { question } token { price { price } spread { spread } } } } } }`, nil}
		},
		"watchlist": func(s *service) page {
			return page{`query ($ids: [String!]!) { tokens(tokenIds: $ids) { outcome market { question } price { price } spread { spread } orderbook { spread } } }`,
				vars{"ids": s.openTokens(10)}}
		},
		"watchlist of nodes": func(s *service) page {
			return page{`query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Token { market { question } price { price } spread { spread } } } }`,
				vars{"ids": tokenNodes(s.openTokens(30))}}
		},
	}
	files, err := filepath.Glob("examples/*.graphql")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d examples and the error %v, want at least one example and no error", len(files), err)
	}
	for _, file := range files {
		pages[filepath.Base(file)] = func(*service) page {
			p := page{query: read(t, file)}
			decode(t, read(t, strings.TrimSuffix(file, ".graphql")+".json"), &p.variables)
			return p
		}
	}
	for name, newPage := range pages {
		for _, delay := range []time.Duration{3500 * time.Millisecond, 20 * time.Second, 90 * time.Second} {
			t.Run(fmt.Sprintf("%s after %v", name, delay), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := startInBubble(t, startTime)
					p := newPage(s)
					ask := func() calls {
						return s.callsDuring(func() {
							s.ask(t, p.query, p.variables, keyOf50)
							time.Sleep(time.Second) // wait for the background refreshes
						})
					}
					first := ask()
					s.clock.Advance(delay)
					second := ask()
					for endpoint, n := range second {
						if n[0] > first[endpoint][0] || n[1] > first[endpoint][1] {
							t.Errorf("%s: the refreshes read %d keys in %d calls, want at most %d keys in %d calls, as for the first query", endpoint, n[1], n[0], first[endpoint][1], first[endpoint][0])
						}
					}
					wantCalls(t, ask(), calls{})
				})
			})
		}
	}
}
