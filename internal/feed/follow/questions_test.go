package follow_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/feed"
	"oddsgraph/internal/feed/follow"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
)

// asked is a question with the tokens T and b:T of two venues.
type asked struct {
	a, b   *testVenue
	source follow.Source
	looks  map[string]*restSource[*market.Market]

	mu      sync.Mutex
	version *questions.Question
	err     error         // of follow.AskedQuestion.Find
	fresh   time.Duration // of the markets
}

// edit changes what the next reads of the stream find.
func (x *asked) edit(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f()
}

func (x *asked) find() (*questions.Question, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version, x.err
}

func (x *asked) freshUntil() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return time.Now().Add(x.fresh)
}

func askQuestion(t *testing.T, f func(t *testing.T, x *asked)) {
	synctest.Test(t, func(t *testing.T) {
		x := &asked{
			a: newTestVenue(t, messages.ChannelOrderbook), b: newTestVenue(t, messages.ChannelOrderbook),
			version: &questions.Question{Legs: []questions.Leg{{Token: "T"}, {Token: "b:T"}}}, fresh: time.Hour,
			looks: map[string]*restSource[*market.Market]{"T": {value: marketNamed("one")}, "b:T": {value: marketNamed("one")}},
		}
		x.source = follow.Source{Names: market.Names{"", "b"}, Feeds: []*feed.Feed{x.a.Feed, x.b.Feed}, Timeout: timeout}
		f(t, x)
	})
}

func marketNamed(question string) *market.Market {
	return &market.Market{MarketID: "M", Question: question}
}

func (x *asked) run(t *testing.T) *received[follow.QuestionState] {
	return run(t, follow.Question(x.a.ctx, x.source, follow.AskedQuestion{
		Find: x.find,
		Look: func(ctx context.Context, l *questions.Leg) (state reads.Leg) {
			state.Market.Value, state.Market.Err = x.looks[l.Token].read(ctx)
			if state.Market.Err == nil {
				state.Market.Value.Handle = reads.NewHandle(x.freshUntil())
			}
			state.Book.Value.Source = market.SourceStream
			return state
		},
		Every: 250 * time.Millisecond,
	}))
}

// showLegs shows the names of the markets. A failed read is "!", and a stale market ends with "?".
func showLegs(s follow.QuestionState) string {
	out := ""
	for _, l := range s.Legs {
		switch {
		case l.Market.Err != nil:
			out += "!"
		case l.Market.Value.Stale:
			out += l.Market.Value.Value.Question + "?"
		default:
			out += l.Market.Value.Value.Question
		}
		out += " "
	}
	return out[:len(out)-1]
}

func booksOf(id string) messages.Topic {
	return messages.Topic{Channel: messages.ChannelOrderbook, ID: id}
}

func (x *asked) sendBook() {
	x.b.send(booksOf("b:T"), messages.KindBookSnapshot, func(m *messages.Message) {
		m.Book = &market.Book{TokenID: "b:T", Depth: 200, Epoch: "e", Seq: m.Seq}
	})
}

// TestQuestion checks when the stream looks at a leg, and that it watches the book and the market of each leg.
func TestQuestion(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		f := x.run(t)
		a, b := x.looks["T"], x.looks["b:T"]
		time.Sleep(1100 * time.Millisecond) // from now on, the test acts between the looks
		f.want(showLegs, "INITIAL one one")
		if !x.a.up.has(booksOf("T")) || !x.b.up.has(booksOf("b:T")) || !x.a.up.has(marketsOf("M")) {
			t.Errorf("the topics %v and %v are watched", x.a.up.open, x.b.up.open)
		}
		b.set(marketNamed("two"))
		time.Sleep(500 * time.Millisecond)
		f.want(showLegs, "CHANGE one two")
		x.b.connect(booksOf("b:T"))
		time.Sleep(time.Second)
		for before, i := b.count(), 1; i <= 3; i++ {
			x.sendBook()
			time.Sleep(250 * time.Millisecond)
			if n := b.count() - before; n != i {
				t.Errorf("after %d changes, the stream has looked at the leg %d times", i, n)
			}
		}
		b.edit(func() { b.meta = staleMeta })
		time.Sleep(time.Minute) // the pause grows to five seconds
		ofA, ofB := a.count(), b.count()
		for range 20 {
			x.sendBook()
			time.Sleep(time.Second)
		}
		if ofA, ofB = a.count()-ofA, b.count()-ofB; ofA != 40 || ofB != 4 {
			t.Errorf("in 20 seconds, the stream has looked at the live leg %d times and at the stale one %d times, want 40 and 4", ofA, ofB)
		}
		f.want(showLegs, "FRESHNESS one two?")
		x.edit(func() { x.version = &questions.Question{Legs: x.version.Legs} }) // read again, without a change
		time.Sleep(time.Second)
		f.want(showLegs)
		x.edit(func() { x.version = &questions.Question{Legs: x.version.Legs[:1]} })
		time.Sleep(time.Second)
		f.want(showLegs, "RESYNC one")
		x.edit(func() { x.err = errDown })
		time.Sleep(time.Second)
		if f.want(showLegs); !f.ended || !errors.Is(f.err, errDown) {
			t.Errorf("the stream has not ended with the error of Find, but with %v", f.err)
		}
	})
}

// TestQuestionHangs checks that a look that hangs delays no other leg and ends in time, and that a reader that joins gets the present
// state.
func TestQuestionHangs(t *testing.T) {
	askQuestion(t, func(t *testing.T, x *asked) {
		group := newReaders()
		x.source.Group, x.fresh = group, 10*time.Second
		a, b := x.looks["T"], x.looks["b:T"]
		b.slow(time.Hour)
		f := x.run(t)
		group.join() // before the first event, which is for all readers
		time.Sleep(timeout)
		f.want(showLegs, "INITIAL one !")
		b.slow(0)
		time.Sleep(10 * time.Second)
		f.want(showLegs, "CHANGE one one")
		group.join()
		f.want(showLegs, "INITIAL one one")
		x.edit(func() { x.fresh = 2 * time.Second }) // for all later looks
		time.Sleep(time.Second)
		b.slow(time.Hour)
		a.set(marketNamed("two"))
		time.Sleep(1200 * time.Millisecond)
		f.want(showLegs, "CHANGE two one")
		time.Sleep(2 * time.Second) // the fresh time of the second leg ends
		f.want(showLegs, "FRESHNESS two one?")
		a.set(marketNamed("three"))
		time.Sleep(600 * time.Millisecond)
		f.want(showLegs, "CHANGE three one?")
		group.join()
		time.Sleep(5 * time.Second)
		f.want(showLegs, "INITIAL three one?", "CHANGE three !")
		if to := f.cohorts(); len(to) != 8 || to[2] == 0 || to[5] != 0 || to[6] != group.last {
			t.Errorf("the events were for the cohorts %v, want the third and the seventh for readers that join", to)
		}
		x.edit(func() { x.version = &questions.Question{Legs: x.version.Legs[:1]} })
		group.join() // the stream notices both at once
		time.Sleep(2 * time.Second)
		if f.want(showLegs, "RESYNC three"); group.joiners != 0 {
			t.Error("after a change of the question, a reader that has waited gets no events")
		}
	})
}
