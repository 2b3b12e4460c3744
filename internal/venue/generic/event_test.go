package generic

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
)

// TestEvent checks that an event contains the markets of all search pages, and a market on two pages only once. If there are more
// than maxEventPages pages, the read must fail.
func TestEvent(t *testing.T) {
	for pages := 1; pages <= 7; pages++ {
		v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
			i, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			next := ""
			if i+1 < pages {
				next = fmt.Sprintf(`"nextCursor":"%d",`, i+1)
			}
			row := `"eventId":"e1","eventSlug":"slug","eventTitle":"Title","volume":"1"`
			_, _ = fmt.Fprintf(w, `{%s"markets":[%s,%s]}`, next, searchRow(fmt.Sprintf(`"marketId":"%d",%s`, i, row)), searchRow(fmt.Sprintf(`"marketId":"%d",%s`, i+1, row)))
		}))
		e, err := v.client(t).Event(t.Context(), upstream.Call{}, market.EventRef{EventID: "e1", EventSlug: "other"})
		if pages > maxEventPages {
			if market.CodeOf(err) != market.CodeUpstreamBadResponse || e != nil || v.count() != maxEventPages {
				t.Errorf("with %d pages, Event returned %+v and the error %v after %d calls, want %s after %d calls", pages, e, err, v.count(), market.CodeUpstreamBadResponse, maxEventPages)
			}
			continue
		}
		if err != nil || v.count() != pages {
			t.Fatalf("with %d pages, Event returned the error %v after %d calls", pages, err, v.count())
		}
		if e.EventID != "e1" || e.Slug != "slug" || e.Title != "Title" || len(e.Markets) != pages+1 || e.Volume.String() != fmt.Sprint(pages+1) {
			t.Errorf("with %d pages, Event returned %+v", pages, e)
		}
		for i, q := range v.queries() {
			if !strings.Contains(q, "eventId=e1") || strings.Contains(q, "other") || !strings.Contains(q, "limit=100") || strings.Contains(q, "cursor=") != (i > 0) {
				t.Errorf("with %d pages, the request for page %d has the query %s", pages, i, q)
			}
		}
	}
}

// TestEventBySlug checks that Event searches for a slug, and returns nil if the search finds no market.
func TestEventBySlug(t *testing.T) {
	v := newVenue(t, everywhere(answer(`{"markets":[]}`)))
	if e, err := v.client(t).Event(t.Context(), upstream.Call{}, market.EventRef{EventSlug: "s"}); e != nil || err != nil {
		t.Errorf("Event returned %+v and the error %v, want neither", e, err)
	}
	if q := v.queries(); len(q) != 1 || !strings.Contains(q[0], "eventSlug=s") || strings.Contains(q[0], "eventId") {
		t.Errorf("the requests have the queries %q, want one query with the slug", q)
	}
}

// TestBooksAndHistories checks that Books and PriceHistories make one call for each query. It also checks that Books fails if every
// call fails.
func TestBooksAndHistories(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		switch id := r.URL.Query().Get("tokenId"); {
		case id == "missing":
			w.WriteHeader(http.StatusNotFound)
		case id == "bad":
			answer(`[]`)(w, r)
		case strings.HasSuffix(r.URL.Path, "orderbook"):
			answer(`{"bids":[["0.4","1"]],"asks":[]}`)(w, r)
		default:
			answer(`{"history":[]}`)(w, r)
		}
	}))
	c := v.client(t)
	books, err := c.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "1", Depth: 5}, {TokenID: "missing", Depth: 5}, {TokenID: "bad", Depth: 5}})
	if err != nil || books[0].Value == nil || books[1].Value != nil || books[1].Err != nil || books[2].Err == nil || v.count() != 3 {
		t.Errorf("Books returned %+v and the error %v after %d calls, want a book, an absent book and an error after 3 calls", books, err, v.count())
	}
	histories, err := c.PriceHistories(t.Context(), upstream.Call{}, []queries.PriceHistory{{TokenID: "1", From: 2, To: 3}, {TokenID: "missing", From: 2, To: 3}})
	if err != nil || histories[0].Value == nil || histories[1].Value != nil || v.count() != 5 {
		t.Errorf("PriceHistories returned %+v and the error %v after %d calls in total, want a history and an absent history after 5 calls", histories, err, v.count())
	}
	if _, err := c.Books(t.Context(), upstream.Call{}, []queries.Book{{TokenID: "bad", Depth: 5}}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Books returned the error %v, want %s", err, market.CodeUpstreamBadResponse)
	}
}
