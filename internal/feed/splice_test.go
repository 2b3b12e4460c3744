package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/market/queries"
)

// origin is an Origin whose reads wait until the test answers them.
type origin struct {
	mu      sync.Mutex
	waiting []*pendingRead
	// maxRunning is the greatest number of concurrent reads so far. started is the number of all reads.
	maxRunning, started int
	times               []time.Time
	// If ignoresContext is true, reads continue after their context has ended.
	ignoresContext bool
	age            market.Age // the age of every response
}

type pendingRead struct {
	id     string
	answer chan messages.Message
	err    chan error
}

func (o *origin) wait(ctx context.Context, id string) (messages.Message, error) {
	r := &pendingRead{id, make(chan messages.Message, 1), make(chan error, 1)}
	o.mu.Lock()
	o.waiting = append(o.waiting, r)
	o.started++
	o.maxRunning = max(o.maxRunning, len(o.waiting))
	o.times = append(o.times, time.Now())
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting = slices.DeleteFunc(o.waiting, func(x *pendingRead) bool { return x == r })
	}()
	if o.ignoresContext {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case m := <-r.answer:
		return m, nil
	case err := <-r.err:
		return messages.Message{}, err
	case <-ctx.Done():
		return messages.Message{}, ctx.Err()
	}
}

func (o *origin) Price(ctx context.Context, id string) (market.Read[*market.Price], error) {
	m, err := o.wait(ctx, id)
	return market.Read[*market.Price]{Value: m.Price, Meta: o.meta()}, err
}

func (o *origin) meta() market.Meta {
	return market.Meta{Handle: market.NewHandleOfAge(time.Time{}, o.age)}
}

func (o *origin) Book(ctx context.Context, id string, depth int) (r market.Read[*market.Book], err error) {
	if depth != queries.MaxBookDepth {
		return r, fmt.Errorf("a book of depth %d was requested", depth)
	}
	m, err := o.wait(ctx, id)
	return market.Read[*market.Book]{Value: m.Book, Meta: o.meta()}, err
}

func (o *origin) running() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

func (o *origin) first() *pendingRead {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return nil
	}
	return o.waiting[0]
}

// answerRead answers the oldest waiting read.
func (p *player) answerRead(number, value string) {
	synctest.Wait()
	r := p.origin.first()
	if r == nil {
		p.t.Fatalf("%s: no read is running", p.line)
	}
	defer synctest.Wait()
	switch number {
	case "fails":
		r.err <- errors.New("the venue is away")
		return
	case "none":
		r.answer <- messages.Message{}
		return
	}
	epoch, seq, _, at := numbers(number)
	if p.key.Channel == messages.ChannelPrices {
		r.answer <- messages.Message{Price: &market.Price{TokenID: "T", Price: dec(value), Timestamp: at}}
		return
	}
	b := parseBook("T", value)
	b.Epoch, b.Seq, b.Timestamp = epoch, seq, at
	r.answer <- messages.Message{Book: b}
}

func TestSplice(t *testing.T) {
	for _, s := range spliceScripts {
		t.Run(s.channel+"/"+s.name, func(t *testing.T) { s.run(t, &origin{}) })
	}
}

// TestSpliceOfABufferThatOverflowed checks that the feed uses only a REST book that contains the dropped changes after the buffer
// of changes has overflowed.
func TestSpliceOfABufferThatOverflowed(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		t.Run(fmt.Sprintf("numbered %t", numbered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlayer(t, bookOf("T"), &origin{})
				p.upNow(bookOf("T"))
				const n = 2*maxBuffered + 7
				for i := range n {
					m := deltaMessage("T", "", 0, fmt.Sprintf("b.50x%d", i+1))
					if m.Time = time.Unix(int64(i+1), 0); numbered {
						m.Epoch, m.Seq = "A", uint64(i+1)
					}
					p.Message(m)
				}
				time.Sleep(4 * time.Second)
				p.answerRead("-@900", ".50x900 | .60x1")
				if s, _ := p.w.State(); s.Live {
					t.Fatalf("got the live book %s, want none before the lost changes are known", showBook(s.Book))
				}
				if numbered {
					time.Sleep(4 * time.Second)
					p.answerRead(fmt.Sprintf("-@%d", n-2), ".50x1 | .60x1")
					if s, _ := p.w.State(); !s.Live || showBook(s.Book) != fmt.Sprintf(".50x%d | .60x1", n) {
						t.Fatalf("after a response with all dropped changes, the book is %s (live: %t), want a live book with the last change", showBook(s.Book), s.Live)
					}
					return
				}
				late := bookMessage("T", "", 0, ".50x900 | .60x1")
				late.Time = time.Unix(900, 0)
				p.Message(late)
				if s, _ := p.w.State(); s.Live {
					t.Fatalf("got the live book %s, want none before the lost changes are known", showBook(s.Book))
				}
			})
		})
	}
}

// TestOldReadIsNotUsed checks that the feed drops a REST response that may have been made before the topic was up. The feed must
// keep the connection, and read again when the venue has a newer response.
func TestOldReadIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{age: market.Age{Known: true, Least: 20 * time.Second, Most: 21 * time.Second, Renewed: 30 * time.Second}}
		p := newPlayer(t, bookOf("T"), o)
		p.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		p.answerRead("41", ".50x41 | .60x1")
		if s, _ := p.w.State(); s.Live || s.Known {
			t.Errorf("after a response that may be too old, Live is %t and Known is %t, want false for both", s.Live, s.Known)
		}
		time.Sleep(29 * time.Second)
		if synctest.Wait(); o.started != 1 || p.Stats().Reconnects != 0 {
			t.Errorf("the feed made %d reads and %d reconnects, want 1 and 0", o.started, p.Stats().Reconnects)
		}
		time.Sleep(5 * time.Second)
		// This response is as old as the first response, but it was made after the topic was up.
		p.answerRead("41", ".50x42 | .60x1")
		if s, _ := p.w.State(); !s.Live || showBook(s.Book) != ".50x42 | .60x1" {
			t.Errorf("after a new response, the book is %s (live: %t), want the live book of the response", showBook(s.Book), s.Live)
		}
	})
}

// TestUnwantedReadsAreDropped checks that the feed drops the result of a read if a snapshot arrived or the connection was lost
// during the read.
func TestUnwantedReadsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayer(t, bookOf("T"), &origin{ignoresContext: true})
		p.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		p.Message(bookMessage("T", "A", 41, ".50x41 | .60x1"))
		p.answerRead("A99", ".50x99 | .60x1")
		if s, _ := p.w.State(); !s.Live || s.Seq != 41 {
			t.Errorf("after a snapshot during a read: Live is %t and Seq is %d, want true and 41", s.Live, s.Seq)
		}
		p.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		p.downNow(bookOf("T"))
		p.answerRead("A99", ".50x99 | .60x1")
		if s, _ := p.w.State(); s.Live || s.Seq != 41 {
			t.Errorf("after a lost connection during a read: Live is %t and Seq is %d, want false and 41", s.Live, s.Seq)
		}
	})
}

func TestSplicedBookIsCutToTheDepthOfItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlayer(t, bookOf("T"), &origin{})
		p.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		p.answerRead("A41", ".50x1 .49x1 .48x1 | .60x1")
		m := deltaMessage("T", "A", 42, "b.50x2")
		m.Depth = 2
		p.Message(m)
		s, _ := p.w.State()
		if showBook(s.Book) != ".50x2 .49x1 | .60x1" || s.Book.Depth != 2 || s.Book.Covers(3) {
			t.Errorf("the book is %s with the depth %d, want .50x2 .49x1 | .60x1 with the depth 2", showBook(s.Book), s.Book.Depth)
		}
	})
}

func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{}
		r := newTestFeed(t, func(c *Config) { c.Origin = o })
		reader := r.NewReader("reader")
		defer reader.Close()
		var topics []messages.Topic
		for i := range 100 {
			topics = append(topics, bookOf(fmt.Sprint(i)))
			watchTopic(t, reader, topics[i], "")
		}
		r.Up(topics)
		time.Sleep(5 * time.Second)
		answered := 0
		for synctest.Wait(); o.first() != nil; synctest.Wait() {
			r := o.first()
			r.answer <- messages.Message{Book: parseBook(r.id, ".50x1 | .60x1")}
			answered++
		}
		if o.maxRunning != maxReads || answered != 100 || r.Stats().Spliced != 100 {
			t.Errorf("%d reads ran at once, %d reads were answered and %d topics were spliced; want %d, 100 and 100", o.maxRunning, answered, r.Stats().Spliced, maxReads)
		}
	})
}

// TestReadsAreBackedOff checks that the feed reads at growing intervals if each read fails.
func TestReadsAreBackedOff(t *testing.T) {
	for _, key := range []messages.Topic{priceOf("T"), bookOf("T")} {
		t.Run(string(key.Channel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &origin{}
				newPlayer(t, key, o).upNow(key)
				end := time.Now().Add(time.Hour)
				for time.Now().Before(end) {
					if synctest.Wait(); o.first() != nil {
						o.first().err <- errors.New("the venue is away")
					}
					time.Sleep(time.Second)
				}
				if o.started < 25 || o.started > 60 {
					t.Errorf("the feed made %d reads in an hour, want 25 to 60", o.started)
				}
				for i := 9; i < len(o.times); i++ {
					if d := o.times[i].Sub(o.times[i-1]); d < maxReadDelay/2 || d > maxReadDelay+5*time.Second {
						t.Errorf("the time between two reads is %v, want %v to %v", d, maxReadDelay/2, maxReadDelay+5*time.Second)
					}
				}
			})
		})
	}
}

func TestCloseWaitsForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{}
		r := newTestFeed(t, func(c *Config) { c.Origin, c.Linger = o, time.Second })
		reader, w := r.watch(t, bookOf("T"))
		other, _ := r.watch(t, bookOf("U"))
		r.upNow(bookOf("T"), bookOf("U"))
		time.Sleep(4 * time.Second)
		if synctest.Wait(); o.running() != 2 {
			t.Fatalf("%d reads are running, want 2", o.running())
		}
		reader.Close() // after Config.Linger, the feed closes the topic of T and cancels the read
		time.Sleep(1100 * time.Millisecond)
		if synctest.Wait(); o.running() != 1 || strings.Join(r.up.open(), " ") != "orderbook U" {
			t.Fatalf("%d reads are running and the topics %q are open, want 1 read and the book of U", o.running(), r.up.open())
		}
		if s, _ := w.State(); s.Known || r.sink.entry(bookOf("T")) != nil {
			t.Error("a topic whose read was cancelled has a state")
		}
		r.Close()
		if o.running() != 0 {
			t.Error("a read is still running after Close")
		}
		other.Close()
	})
}
