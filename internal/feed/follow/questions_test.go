package follow_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/reads"
)

// asked is a question with the tokens T and b:T of two venues.
type asked struct {
	a, b    *testVenue
	books   *restSource[*market.Book]
	markets map[string]*restSource[*market.Market] // by token
	source  follow.Source
	ctx     context.Context
}

const marketFresh = 10 * time.Second

func askQuestion(t *testing.T, f func(t *testing.T, x *asked)) {
	synctest.Test(t, func(t *testing.T) {
		x := &asked{a: newTestVenue(t, messages.ChannelOrderbook), b: newTestVenue(t, messages.ChannelOrderbook), books: &restSource[*market.Book]{}, markets: map[string]*restSource[*market.Market]{}}
		for _, id := range []string{"T", "b:T"} {
			x.markets[id] = &restSource[*market.Market]{value: &market.Market{Description: "rules", Status: market.StatusOpen}, meta: func() reads.Meta {
				m := freshMeta()
				m.Handle = reads.NewHandle(time.Now().Add(marketFresh))
				return m
			}}
		}
		x.source, x.ctx = follow.Source{Feed: x.a.Feed, Names: market.Names{"b"}, More: []*feed.Feed{x.b.Feed}, Timeout: timeout}, x.a.ctx
		f(t, x)
	})
}

func (x *asked) run(t *testing.T) *received[follow.QuestionUpdate] {
	return run(t, follow.Question(x.ctx, x.source, []string{"T", "b:T"}, 5, 250*time.Millisecond, x.books.list,
		func(ctx context.Context, ids []string) []reads.Result[*market.Market] {
			return x.markets[ids[0]].list(ctx, ids)
		}))
}

func booksOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}

// send sends the whole book of a token, with one bid.
func (x *asked) send(v *testVenue, id, bid string) {
	v.send(booksOf(id), messages.KindBookSnapshot, func(m *messages.Message) {
		m.Book = &market.Book{TokenID: id, Depth: 200, Epoch: "e", Seq: m.Seq, Bids: market.NewSide([]market.Level{{Price: market.MustDecimal(bid), Size: market.MustDecimal("1")}})}
	})
}

// live connects both streams, which send a book.
func (x *asked) live() {
	x.a.connect(booksOf("T"))
	x.b.connect(booksOf("b:T"))
	x.send(x.a, "T", "0.4")
	x.send(x.b, "b:T", "0.5")
}

func showQuestion(u follow.QuestionUpdate) string {
	var out []string
	for i := range u.Books {
		b, m := u.Books[i], u.Markets[i]
		text := "no book"
		switch {
		case b.Err != nil:
			text = "!" + string(market.CodeOf(b.Err))
		case b.Value.Value != nil:
			text = b.Value.Value.BestBid().String() + mark(b.Value.Meta)
		}
		switch {
		case m.Err != nil:
			text += " !" + string(market.CodeOf(m.Err))
		case m.Value.Value == nil:
			text += " no market"
		default:
			text += " " + m.Value.Value.Description + " " + string(m.Value.Value.Status)
			if m.Value.Stale {
				text += " stale"
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// TestQuestion checks the events of books and markets, and that the state of a venue that fails changes nothing of the other one.
func TestQuestion(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		f := x.run(t)
		x.live()
		time.Sleep(time.Second)
		f.want(showQuestion, "INITIAL 0.4 STREAM rules OPEN; 0.5 STREAM rules OPEN")
		for _, bid := range []string{"0.41", "0.42", "0.43"} {
			x.send(x.a, "T", bid)
		}
		time.Sleep(time.Second)
		f.want(showQuestion, "CHANGE 0.41 STREAM rules OPEN; 0.5 STREAM rules OPEN", "CHANGE 0.43 STREAM rules OPEN; 0.5 STREAM rules OPEN")
		x.markets["b:T"].set(&market.Market{Description: "other", Status: market.StatusOpen, Slug: "new"})
		time.Sleep(marketFresh)
		f.want(showQuestion, "CHANGE 0.43 STREAM rules OPEN; 0.5 STREAM other OPEN")
		x.markets["b:T"].set(&market.Market{Description: "other", Status: market.StatusOpen})
		time.Sleep(marketFresh)
		f.want(showQuestion) // only what is compared causes an event
		if n := x.markets["T"].count() + x.markets["b:T"].count(); n != 6 {
			t.Errorf("the markets were read %d times in two fresh times, want 6", n)
		}
		x.books.fail(errDown)
		x.b.disconnect(booksOf("b:T"))
		time.Sleep(time.Second)
		f.want(showQuestion, "FRESHNESS 0.43 STREAM rules OPEN; 0.5 STREAM stale other OPEN")
		x.b.Refused(booksOf("b:T"), market.Errorf(market.CodeNotFound, "unknown"))
		time.Sleep(time.Second)
		f.want(showQuestion, "CHANGE 0.43 STREAM rules OPEN; no book other OPEN")
	})
}

// TestQuestionOverFailure checks the first event over a venue that fails or hangs, and that a market which cannot be read again is stale
// a second after its fresh time.
func TestQuestionOverFailure(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		x.books.fail(errDown)
		x.markets["b:T"].slow(time.Hour)
		f := x.run(t)
		x.a.connect(booksOf("T"))
		x.send(x.a, "T", "0.4")
		time.Sleep(timeout)
		f.want(showQuestion, "INITIAL 0.4 STREAM rules OPEN; !UPSTREAM_UNAVAILABLE !UPSTREAM_TIMEOUT")
		x.markets["b:T"].slow(0)
		time.Sleep(time.Minute + time.Second)
		f.want(showQuestion, "CHANGE 0.4 STREAM rules OPEN; !UPSTREAM_UNAVAILABLE rules OPEN")
		x.markets["T"].slow(time.Hour)
		time.Sleep(marketFresh + 2*time.Second) // the read has not failed yet
		f.want(showQuestion, "FRESHNESS 0.4 STREAM rules OPEN stale; !UPSTREAM_UNAVAILABLE rules OPEN")
		if f.ended {
			t.Errorf("the stream ended with %v", f.err)
		}
	})
}

// TestMarketOfAQuestionIsLate checks that the first event does not wait longer for a market whose read does not end in time, and which
// venue it names.
func TestMarketOfAQuestionIsLate(t *testing.T) {
	for late, venue := range map[string]string{"T": "", "b:T": "b"} {
		t.Run(late, func(t *testing.T) {
			askQuestion(t, func(t *testing.T, x *asked) {
				var once sync.Once
				r := run(t, follow.Question(x.ctx, x.source, []string{"T", "b:T"}, 5, 250*time.Millisecond, x.books.list,
					func(ctx context.Context, ids []string) []reads.Result[*market.Market] {
						if ids[0] == late {
							once.Do(func() { time.Sleep(timeout) })
						}
						return x.markets[ids[0]].list(ctx, ids)
					}))
				x.live()
				time.Sleep(timeout*9/10 + time.Millisecond)
				events := r.take()
				if len(events) != 1 || market.CodeOf(events[0].Problem) != market.CodeUpstreamTimeout || venueOf(events[0].Problem) != venue {
					t.Errorf("got the events %+v, want one problem of the venue %q", events, venue)
				}
				time.Sleep(timeout) // the read ends
			})
		})
	}
}

// venueOf returns the name of the venue in an error, or "".
func venueOf(err error) string {
	at, _ := errors.AsType[*market.VenueError](err)
	if at == nil {
		return ""
	}
	return at.Venue
}

// TestQuestionReaders checks that a reader that joins gets the present state.
func TestQuestionReaders(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		group := newReaders()
		x.source.Group = group
		x.books.slow(time.Second)
		f := x.run(t)
		group.join() // before the first event, which is for all readers
		x.live()
		time.Sleep(5 * time.Second)
		f.want(showQuestion, "INITIAL 0.4 STREAM rules OPEN; 0.5 STREAM rules OPEN")
		group.join()
		f.want(showQuestion, "INITIAL 0.4 STREAM rules OPEN; 0.5 STREAM rules OPEN")
		if to := f.cohorts(); len(to) != 2 || to[0] != 0 || to[1] != group.last {
			t.Errorf("the events were for the cohorts %v, want all and %d", to, group.last)
		}
	})
}
