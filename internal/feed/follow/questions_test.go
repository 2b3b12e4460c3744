package follow_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

// asked is a question with the tokens T and b:T of two venues. The test sets what looks and glances find.
type asked struct {
	a, b          *testVenue
	source        follow.Source
	state, cached *restSource[string]
}

func askQuestion(t *testing.T, f func(t *testing.T, x *asked)) {
	synctest.Test(t, func(t *testing.T) {
		x := &asked{
			a: newTestVenue(t, messages.ChannelOrderbook), b: newTestVenue(t, messages.ChannelOrderbook),
			state: &restSource[string]{value: "one"}, cached: &restSource[string]{value: "failed"},
		}
		x.source = follow.Source{Names: market.Names{"", "b"}, Feeds: []*feed.Feed{x.a.Feed, x.b.Feed}, Timeout: timeout}
		f(t, x)
	})
}

func (x *asked) run(t *testing.T) *received[string] {
	topics := []messages.Topic{booksOf("T"), booksOf("b:T")}
	look := func(ctx context.Context, known *string) (follow.Look[string], error) {
		found := follow.Look[string]{Topics: append(topics[:2:2], marketsOf("M"))}
		if known != nil {
			read, err := x.cached.read(ctx)
			found.State = &read.Value
			return found, err
		}
		read, err := x.state.read(ctx)
		if market.CodeOf(err) == market.CodeUpstreamTimeout { // is part of the state
			read.Value, read.Stale, err = "failed", true, nil
		}
		found.State, found.Fresh, found.Live = &read.Value, !read.Stale, !read.Stale
		return found, err
	}
	return run(t, follow.Question(x.a.ctx, x.source, topics, 250*time.Millisecond, look, func(last, now *string) follow.Reason {
		switch {
		case last == nil:
			return follow.Initial
		case *last == *now:
			return ""
		}
		return follow.Changed
	}))
}

func same(s string) string { return s }

func booksOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}

func (x *asked) sendBook() {
	x.b.send(booksOf("b:T"), messages.KindBookSnapshot, func(m *messages.Message) {
		m.Book = &market.Book{TokenID: "b:T", Depth: 200, Epoch: "e", Seq: m.Seq}
	})
}

// TestQuestion checks when the stream looks, and that it watches the books of all tokens and the topics of looks.
func TestQuestion(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		f := x.run(t)
		time.Sleep(time.Second)
		f.want(same, "INITIAL one")
		if !x.a.up.has(booksOf("T")) || !x.b.up.has(booksOf("b:T")) || !x.a.up.has(marketsOf("M")) {
			t.Errorf("the topics %v and %v are watched", x.a.up.open, x.b.up.open)
		}
		x.state.set("two") // for example after a change of the file
		time.Sleep(time.Second)
		f.want(same, "CHANGE two")
		x.b.connect(booksOf("b:T"))
		time.Sleep(1100 * time.Millisecond) // from now on, the test acts between the ticks of 250ms
		for before, i := x.state.count(), 1; i <= 3; i++ {
			x.sendBook()
			time.Sleep(250 * time.Millisecond)
			if n := x.state.count() - before; n != i {
				t.Errorf("after %d changes, the stream has looked %d times", i, n)
			}
		}
		x.cached.set("two")
		x.state.edit(func() { x.state.meta = staleMeta })
		time.Sleep(time.Minute) // the delay grows to five seconds
		looks, glances := x.state.count(), x.cached.count()
		for range 20 {
			x.sendBook()
			time.Sleep(time.Second)
		}
		if looks, glances = x.state.count()-looks, x.cached.count()-glances; looks != 4 || glances != 76 {
			t.Errorf("in 20 seconds, the stream has looked at stale data %d times and glanced %d times, want 4 and 76", looks, glances)
		}
		x.cached.set("three")
		time.Sleep(250 * time.Millisecond)
		f.want(same, "CHANGE three")
		x.state.fail(errDown)
		time.Sleep(5 * time.Second)
		if f.want(same); !f.ended || !errors.Is(f.err, errDown) {
			t.Errorf("the stream has not ended with the error of look, but with %v", f.err)
		}
	})
}

// TestQuestionHangs checks that looks end in time, that glances show what is known meanwhile, and that a reader that joins gets the
// present state.
func TestQuestionHangs(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		group := newReaders()
		x.source.Group = group
		x.state.slow(time.Hour)
		f := x.run(t)
		group.join() // before the first event, which is for all readers
		time.Sleep(timeout)
		f.want(same, "INITIAL failed")
		x.state.slow(0)
		time.Sleep(10 * time.Second)
		f.want(same, "CHANGE one")
		group.join()
		f.want(same, "INITIAL one")
		x.state.slow(time.Hour)
		x.cached.set("late")
		time.Sleep(2 * time.Second)
		f.want(same, "CHANGE late")
		x.cached.set("later")
		group.join()
		time.Sleep(500 * time.Millisecond)
		f.want(same, "CHANGE later", "INITIAL later")
		if to := f.cohorts(); len(to) != 6 || to[2] == 0 || to[4] != 0 || to[5] != group.last {
			t.Errorf("the events were for the cohorts %v, want the third and the last for readers that join", to)
		}
	})
}
