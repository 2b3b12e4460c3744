package resolvers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oddsgraph/graph/model"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/loaders"
)

// rows is a list of rows at each venue. A venue with an error fails.
type rows struct {
	of   map[string][]string
	fail map[string]error
	// asked contains the names of the venues that the last page asked, and reported its reported errors.
	asked    []string
	reported []error
}

// reporter is a context of a field.
type reporter struct {
	context.Context
	*rows
}

func (r reporter) Report(err error) { r.reported = append(r.reported, err) }

func (reporter) ReportAt(int, error) {}

// read is a readTurn. A cursor is the index of the next row.
func (l *rows) read(_ context.Context, name string, _ queries.Search, _ uint64, n int, after *string) (page[string], error) {
	l.asked = append(l.asked, name)
	if err := l.fail[name]; err != nil {
		return page[string]{}, err
	}
	start, _ := strconv.Atoi(*after)
	all := l.of[name]
	end := min(len(all), start+n)
	p := page[string]{items: all[start:end], total: new(len(all)), cursor: func(i int) string { return strconv.Itoa(start + i + 1) }}
	p.info = model.PageInfo{HasNextPage: end < len(all)}
	p.setEndCursors(nil)
	p.meta.Stale = name == "b"
	return p, nil
}

var threeVenues = &Resolver{Names: market.Names{"", "b", "c"}, Venues: []Venue{{Title: "a"}, {Name: "b", Title: "b"}, {Name: "c", Title: "c"}}}

func (l *rows) turn(first int, after *string, titles ...string) (page[string], error) {
	l.asked, l.reported = nil, nil
	return search[string](reporter{context.Background(), l}, threeVenues, titles, "test", queries.Search{}, first, after, l.read)
}

func venueRows() *rows {
	l := &rows{of: map[string][]string{}, fail: map[string]error{}}
	for name, n := range map[string]int{"": 3, "b": 7, "c": 0} {
		for i := range n {
			l.of[name] = append(l.of[name], fmt.Sprint(name, i))
		}
	}
	return l
}

// TestInTurn reads the rows of three venues page by page, from the end of each page and from each row. One venue has no rows.
func TestInTurn(t *testing.T) {
	want := []string{"0", "b0", "1", "b1", "2", "b2", "b3", "b4", "b5", "b6"}
	for size := 1; size <= len(want)+1; size++ {
		l := venueRows()
		var got []string
		var after *string
		for more := true; more; {
			p, err := l.turn(size, after, "a", "b", "c")
			if err != nil || p.total == nil || *p.total != 10 || p.info.HasPreviousPage != (after != nil) {
				t.Fatalf("size %d after %q: %v, total %v, page info %+v", size, got, err, p.total, p.info)
			}
			for i, row := range p.items {
				if p.metaOf(i).Stale != strings.HasPrefix(row, "b") {
					t.Errorf("row %s has the meta of another venue", row)
				}
				rest, err := l.turn(20, new(p.cursor(i)), "a", "b", "c")
				if next := len(got) + i + 1; err != nil || !slices.Equal(rest.items, want[next:]) {
					t.Fatalf("after row %s: got %q, %v, want %q", row, rest.items, err, want[next:])
				}
			}
			got, after, more = append(got, p.items...), p.info.EndCursor, p.info.HasNextPage
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d rows: got %q, want %q", size, got, want)
		}
	}
}

// TestInTurnAsksAgain fails a venue on the second page, which the third page asks again. A list that has ended is not asked again.
func TestInTurnAsksAgain(t *testing.T) {
	l := venueRows()
	p1, err := l.turn(3, nil, "a", "b")
	l.fail["b"] = market.Errorf(market.CodeUpstreamUnavailable, "down")
	p2, err2 := l.turn(3, p1.info.EndCursor, "a", "b")
	if err != nil || err2 != nil || !slices.Equal(p1.items, []string{"0", "b0", "1"}) || !slices.Equal(p2.items, []string{"2"}) || !p2.info.HasNextPage || p2.total != nil || len(l.reported) != 1 {
		t.Fatalf("got %q, %v, and without b %q, %+v, total %v, %v", p1.items, err, p2.items, p2.info, p2.total, err2)
	}
	if _, err := l.turn(3, p2.info.EndCursor, "a", "b"); !slices.Equal(l.asked, []string{"b"}) || market.CodeOf(err) != market.CodeUpstreamUnavailable {
		t.Errorf("only b is left and fails: asked %q, got %v", l.asked, err)
	} else if at := (*market.VenueError)(nil); !errors.As(err, &at) || at.Venue != "b" {
		t.Errorf("the error names no venue: %v", err)
	}
	clear(l.fail)
	p3, err := l.turn(9, p2.info.EndCursor, "a", "b")
	if err != nil || !slices.Equal(p3.items, l.of["b"][1:]) || p3.info.HasNextPage || p3.total == nil || *p3.total != 10 {
		t.Errorf("b is back: got %q, %+v, total %v, %v", p3.items, p3.info, p3.total, err)
	}
}

// TestInTurnUnsupported searches where one venue cannot search so. The list ends nevertheless.
func TestInTurnUnsupported(t *testing.T) {
	l := venueRows()
	l.fail["b"] = market.Errorf(market.CodeUnsupported, "no such sort")
	p, err := l.turn(2, nil, "b", "a")
	if err != nil || !slices.Equal(p.items, []string{"0", "1"}) || !p.info.HasNextPage {
		t.Fatalf("got %q, %+v, %v", p.items, p.info, err)
	}
	p, err = l.turn(2, p.info.EndCursor, "b", "a")
	if err != nil || !slices.Equal(p.items, []string{"2"}) || p.info.HasNextPage || p.total != nil || !slices.Equal(l.asked, []string{""}) {
		t.Errorf("got %q, %+v, total %v, %v after asking %q", p.items, p.info, p.total, err, l.asked)
	}
	l.fail[""] = market.Errorf(market.CodeUpstreamUnavailable, "down")
	if _, err = l.turn(2, nil, "b", "a"); market.CodeOf(err) != market.CodeUpstreamUnavailable {
		t.Errorf("the other venue is down: got %v, want an error after which clients try again", err)
	} else if at := (*market.VenueError)(nil); errors.As(err, &at) || len(l.reported) != 1 || !errors.As(l.reported[0], &at) || at.Venue != "b" {
		t.Errorf("got %v and reported %v, want an error of each venue, which has the name of the further one", err, l.reported)
	}
}

// TestInTurnPending waits for one venue. The rows of the other are those that the final page has.
func TestInTurnPending(t *testing.T) {
	l := venueRows()
	l.fail["b"] = loaders.ErrPending
	p, err := l.turn(4, nil, "a", "b")
	if err != nil || !slices.Equal(p.items, []string{"0", "1"}) {
		t.Errorf("got %q, %v, want the two rows of the first venue that a page of 4 has", p.items, err)
	}
}

func TestInTurnArguments(t *testing.T) {
	l := venueRows()
	p, err := l.turn(1, nil, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]func() error{
		`BAD_USER_INPUT: venues is empty; null is the first venue`:       func() error { _, err := l.turn(1, nil, []string{}...); return err },
		`BAD_USER_INPUT: venues has "b" twice`:                           func() error { _, err := l.turn(1, nil, "b", "b"); return err },
		`BAD_USER_INPUT: there is no venue "d"; the venues are: a, b, c`: func() error { _, err := l.turn(1, nil, "a", "d"); return err },
		badCursor().Error(): func() error { _, err := l.turn(1, p.info.EndCursor, "b", "a"); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLongTurnCursor checks that a cursor into a list over all venues can be read again if each venue has long cursors.
func TestLongTurnCursor(t *testing.T) {
	c := turnCursor{List: 1}
	for range market.MaxVenues {
		c.At = append(c.At, pageCursor{List: 1, Page: strings.Repeat("x", 1024)}.String())
	}
	after := encodeCursor(c)
	if got, err := parseTurnCursor(1, &after, market.MaxVenues); err != nil || !slices.Equal(got.At, c.At) {
		t.Errorf("got the error %v for a cursor of %d bytes", err, len(after))
	}
	if _, err := parseTurnCursor(1, new(strings.Repeat("x", 100_000)), market.MaxVenues); err == nil {
		t.Error("a cursor of 100,000 bytes is accepted")
	}
}
