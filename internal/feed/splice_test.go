package feed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

// origin is an Origin whose reads wait for their answers.
type origin struct {
	mu      sync.Mutex
	waiting []*pendingRead
	// most is the greatest number of reads that were under way at once, started counts all.
	most, started int
	times         []time.Time
	// deaf reads do not end with their context.
	deaf bool
	age  market.Age // of every answer
}

type pendingRead struct {
	id     string
	answer chan market.Message
	err    chan error
}

func (o *origin) wait(ctx context.Context, id string) (market.Message, error) {
	r := &pendingRead{id, make(chan market.Message, 1), make(chan error, 1)}
	o.mu.Lock()
	o.waiting = append(o.waiting, r)
	o.started++
	o.most = max(o.most, len(o.waiting))
	o.times = append(o.times, time.Now())
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for i, x := range o.waiting {
			if x == r {
				o.waiting = append(o.waiting[:i:i], o.waiting[i+1:]...)
				return
			}
		}
	}()
	if o.deaf {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case m := <-r.answer:
		return m, nil
	case err := <-r.err:
		return market.Message{}, err
	case <-ctx.Done():
		return market.Message{}, ctx.Err()
	}
}

func (o *origin) Price(ctx context.Context, id string) (market.Read[*market.Price], error) {
	m, err := o.wait(ctx, id)
	return market.Read[*market.Price]{Value: m.Price, Meta: o.meta()}, err
}

// meta is that of an answer of the origin's age.
func (o *origin) meta() market.Meta {
	return market.Meta{Handle: market.NewHandleOfAge(time.Time{}, o.age)}
}

func (o *origin) Book(ctx context.Context, id string, depth int) (r market.Read[*market.Book], err error) {
	if depth != market.MaxBookDepth {
		return r, fmt.Errorf("a book of depth %d was asked for", depth)
	}
	m, err := o.wait(ctx, id)
	return market.Read[*market.Book]{Value: m.Book, Meta: o.meta()}, err
}

func (o *origin) under() int {
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

// answer ends the read that is under way.
func (p *player) answer(number, value string) {
	synctest.Wait()
	r := p.origin.first()
	if r == nil {
		p.t.Fatalf("%s: no read is under way", p.at)
	}
	defer synctest.Wait()
	switch number {
	case "fails":
		r.err <- errors.New("the venue is away")
		return
	case "none":
		r.answer <- market.Message{}
		return
	}
	epoch, seq, _, at := numbers(number)
	if p.key.Channel == market.ChannelPrices {
		r.answer <- market.Message{Price: &market.Price{TokenID: "T", Price: dec(value), Timestamp: at}}
		return
	}
	b := parseBook("T", value)
	b.Epoch, b.Seq, b.Timestamp = epoch, seq, at
	r.answer <- market.Message{Book: b}
}

// A topic whose snapshot does not come is asked for it again after 2 s, and after 4 s its state is read.
var spliceScripts = []script{
	// Numbered.
	{"by number", "orderbook", `
		up
		delta A42 b.50x42
		delta A43 b.49x43
		wait 2s
		asked resync
		reading 0
		wait 2s
		reading 1
		delta A44 b.48x44
		unknown
		rest A42 .50x2 .47x2 | .60x2
		live A44 r0 .50x2 .49x43 .48x44 .47x2 | .60x2
		delta A45 b.47x0
		live A45 r0 .50x2 .49x43 .48x44 | .60x2
		from STREAM
		wait 1h
		asked
		reading 0`},
	{"from REST until the stream says more", "orderbook", `
		up
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		live A42 r0 .50x2 | .60x2
		from REST
		delta A43 b.50x3
		live A43 r0 .50x3 | .60x2
		from STREAM`},
	{"what REST has in it is not applied again", "orderbook", `
		up
		delta A42 b.50x42
		delta A43 b.50x43
		wait 4s
		asked resync
		rest A43 .50x9 | .60x2
		live A43 r0 .50x9 | .60x2
		delta A43 b.50x43
		live A43 r0 .50x9 | .60x2`},
	{"an answer that overtakes the stream", "orderbook", `
		up
		delta A42 b.50x42
		wait 4s
		asked resync
		rest A44 .50x9 | .60x2
		live A44 r0 .50x9 | .60x2
		delta A43 b.50x43
		delta A44 b.50x44
		live A44 r0 .50x9 | .60x2
		delta A45 b.50x45
		live A45 r0 .50x45 | .60x2`},
	{"an answer that the changes do not follow", "orderbook", `
		up
		delta A45 b.50x45
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		unknown
		reading 0
		wait 3s
		asked resync
		wait 1500ms
		reading 1
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"a gap in what was buffered", "orderbook", `
		up
		delta A43 b.50x43
		delta A45 b.50x45
		wait 4s
		asked resync
		rest A42 .50x2 | .60x2
		unknown
		wait 4s
		asked resync
		rest A44 .50x4 .49x4 | .60x2
		live A45 r0 .50x45 .49x4 | .60x2`},
	{"another epoch does not fit", "orderbook", `
		up
		delta B2 b.50x2
		wait 4s
		asked resync
		rest A41 .50x1 | .60x2
		unknown
		wait 4s
		asked resync
		rest B1 .49x1 | .60x2
		live B2 r0 .50x2 .49x1 | .60x2`},
	{"a gap that no snapshot heals", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		wait 2s
		asked resync
		wait 2s
		reading 1
		rest A40 .50x1 | .60x1
		stale A41 r0 .50x10 | .60x10
		wait 4s
		asked resync
		rest A42 .50x20 .48x20 | .60x10
		live A43 r1 .50x30 .48x20 | .60x10`},
	{"an answer older than what is known", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		up
		wait 4s
		asked resync
		rest A40 .50x1 | .60x1
		stale A41 r0 .50x10 | .60x10
		wait 4s
		asked resync
		rest A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"a crossed answer", "orderbook", `
		up
		wait 4s
		asked resync
		rest A41 .60x1 | .50x1
		unknown
		wait 4s
		asked resync
		rest A41 .50x1 | .60x1
		live A41 r0 .50x1 | .60x1`},
	{"changes that cross the answer", "orderbook", `
		up
		delta A42 b.60x1
		wait 4s
		asked resync
		rest A41 .50x1 | .60x1
		unknown
		wait 4s
		asked resync
		rest A42 .60x1 | .70x1
		live A42 r0 .60x1 | .70x1`},

	// Without numbers, by the venue's times.
	{"by time", "orderbook", `
		up
		delta -@10 b.50x10
		delta -@20 b.49x20
		delta -@30 b.48x30
		wait 4s
		asked resync
		rest -@20 .50x9 .49x9 .48x9 | .60x2
		live 0 r0 .50x9 .49x20 .48x30 | .60x2
		from STREAM
		delta -@40 b.50x40
		live 0 r0 .50x40 .49x20 .48x30 | .60x2`},
	{"a change that comes behind the answer which has it", "orderbook", `
		up
		wait 4s
		asked resync
		rest -@20 .50x9 | .60x2
		delta -@19 b.50x19
		live 0 r0 .50x9 | .60x2
		delta -@20 b.50x20
		live 0 r0 .50x20 | .60x2
		wait 1m
		delta -@19 b.50x19
		live 0 r0 .50x19 | .60x2`},
	{"a change of the epoch before that comes behind the answer", "orderbook", `
		up
		wait 4s
		asked resync
		rest B5@20 .50x9 | .60x2
		delta A41@19 b.50x41
		live B5 r0 .50x9 | .60x2
		delta B6@21 b.50x6
		live B6 r0 .50x6 | .60x2`},
	{"an answer from before the known state", "orderbook", `
		up
		snap -@20 .50x20 | .60x2
		down
		up
		wait 4s
		asked resync
		rest -@19 .50x19 | .60x2
		stale 0 r0 .50x20 | .60x2
		wait 4s
		asked resync
		rest -@20 .50x20 | .60x2
		live 0 r1 .50x20 | .60x2`},
	{"a wrong time does not hold for ever", "orderbook", `
		up
		snap -@99999 .50x20 | .60x2
		down
		wait 1m
		up
		wait 4s
		asked resync
		rest -@19 .50x19 | .60x2
		live 0 r1 .50x19 | .60x2`},
	{"without times by when they came", "orderbook", `
		up
		delta - b.50x1
		wait 4s
		asked resync
		reading 1
		delta - b.49x2
		rest - .50x9 .49x9 | .60x2
		live 0 r0 .50x9 .49x2 | .60x2
		delta - b.50x3
		live 0 r0 .50x3 .49x2 | .60x2`},
	{"numbered changes and an answer without numbers", "orderbook", `
		up
		delta A42@10 b.50x42
		delta A43@20 b.49x43
		wait 4s
		asked resync
		rest -@15 .50x9 .49x9 | .60x2
		live A43 r0 .50x9 .49x43 | .60x2
		delta A45 b.50x45
		asked resync
		stale A43 r0 .50x9 .49x43 | .60x2
		snap A45 .50x45 | .60x2
		live A45 r1 .50x45 | .60x2`},
	{"numbered changes that the answer has in it count on", "orderbook", `
		up
		delta A42@10 b.50x42
		wait 4s
		asked resync
		rest -@15 .50x9 | .60x2
		live A42 r0 .50x9 | .60x2
		delta A43@14 b.50x43
		live A43 r0 .50x9 | .60x2
		delta A44@15 b.50x44
		live A44 r0 .50x44 | .60x2
		delta A46@16 b.50x46
		asked resync
		snap A46 .50x46 | .60x2
		live A46 r1 .50x46 | .60x2`},
	{"an answer without an epoch does not make the stream's one the past", "orderbook", `
		up
		snap A41@1 .50x41 | .60x2
		delta A43@30 b.50x43
		asked resync
		wait 4s
		asked resync
		rest -@20 .50x20 | .60x2
		live A43 r1 .50x43 | .60x2
		delta A44@40 b.50x44
		live A44 r1 .50x44 | .60x2
		down
		up
		wait 4s
		asked resync
		rest -@50 .50x50 | .60x2
		live 0 r2 .50x50 | .60x2
		delta A46@60 b.50x60
		live A46 r2 .50x60 | .60x2`},

	// Reads that lead nowhere.
	{"a read that fails", "orderbook", `
		up
		delta A42 b.50x42
		wait 4s
		asked resync
		rest fails
		unknown
		reading 0
		wait 4s
		asked resync
		rest none
		wait 2s
		asked reconnect
		reading 0`},
	{"a read that takes too long is given up", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		wait 14900ms
		reading 1
		asked
		wait 200ms
		reading 0
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"the snapshot comes first", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		snap A41 .50x10 | .60x10
		reading 0
		live A41 r0 .50x10 | .60x10`},
	{"the connection ends during the read", "orderbook", `
		up
		wait 4s
		asked resync
		reading 1
		down
		reading 0
		wait 1h
		up
		wait 2s
		reading 1
		rest A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"a venue that answers a resync by subscribing anew", "orderbook", `
		up
		wait 2s
		asked resync
		up
		wait 2s
		reading 1
		rest A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},

	// Prices, which are whole.
	{"a venue that sends no first price", "prices", `
		up
		wait 4s
		asked resync
		reading 1
		rest -@20 .65
		live 0 r0 .65
		from REST
		price A7@19 .19
		live 0 r0 .65
		price A8@20 .66 .65/.67
		live A8 r0 .66 .65/.67
		from STREAM
		wait 1h
		asked
		down
		up
		wait 4s
		asked resync
		rest -@99 .67
		live 0 r1 .67`},
	{"the stream's price comes first", "prices", `
		up
		wait 4s
		asked resync
		reading 1
		price A7@19 .65
		reading 0
		live A7 r0 .65`},
	{"a price that cannot be read is tried again now and then, and no connection is dropped for it", "prices", `
		up
		wait 4s
		asked resync
		rest fails
		wait 4s
		asked resync
		rest fails
		wait 8s
		rest fails
		asked
		wait 16s
		rest -@5 .65
		live 0 r0 .65`},

	// Tapes, which REST has not.
	{"a venue that sends no tape", "trades", `
		up
		trade A3 t1
		trade A4 t2
		unknown
		wait 4s
		asked resync
		took t1 t2
		live A4 r0 t1 t2
		trade A5 t3
		took t3
		trade A7 t5
		asked resync
		trade A8 t6
		trade A8 t6
		wait 4s
		asked resync
		took gap t5 t6
		live A8 r1 t1 t2 t3 t5 t6
		down
		up
		trade B1 t9
		wait 4s
		asked resync
		took gap t9
		live B1 r2 t1 t2 t3 t5 t6 t9
		wait 1h
		asked`},
	{"trades of which one was lost before the tape was given up", "trades", `
		up
		trade A3 t1
		trade A5 t3
		wait 4s
		asked resync
		took gap t1 t3
		live A5 r0 t1 t3`},
	{"trades without numbers and without a tape", "trades", `
		up
		trade - t1
		wait 4s
		asked resync
		took t1
		down
		up
		trade - t2
		wait 4s
		asked resync
		took gap t2
		live 0 r1 t1 t2`},
	{"a repeated trade is no gap", "trades", `
		up
		trade A3 t1
		trade A3 t1
		wait 4s
		asked resync
		took t1
		live A3 r0 t1`},
	{"a tape that comes late", "trades", `
		up
		trade A3 t3
		wait 4s
		asked resync
		took t3
		tape A4 t2 t3 t4
		took t4
		live A4 r0 t3 t4`},

	// What cannot be read.
	{"no tape", "trades", `
		up
		wait 6s
		asked resync resync reconnect
		reading 0`},
	{"no account", "user", `
		up
		wait 6s
		asked resync resync reconnect
		reading 0`},
}

func TestSplice(t *testing.T) {
	for _, s := range spliceScripts {
		t.Run(s.channel+"/"+s.name, func(t *testing.T) { s.run(t, &origin{}) })
	}
}

// TestSpliceOfABufferThatOverflowed buffers more than there is room for: without the changes that were lost, only a book
// that has them in it can be gone on from.
func TestSpliceOfABufferThatOverflowed(t *testing.T) {
	for _, numbered := range []bool{false, true} {
		t.Run(fmt.Sprintf("numbered %t", numbered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &origin{}
				r := newTestFeed(t, func(c *Config) { c.Origin = o })
				reader, w := r.watch(t, bookOf("T"))
				defer reader.Close()
				r.upNow(bookOf("T"))
				const n = 2*maxBuffered + 7
				for i := range n {
					m := deltaMessage("T", "", 0, fmt.Sprintf("b.50x%d", i+1))
					if m.Time = time.Unix(int64(i+1), 0); numbered {
						m.Epoch, m.Seq = "A", uint64(i+1)
					}
					r.Message(m)
				}
				p := &player{t: t, key: bookOf("T"), origin: o}
				time.Sleep(4 * time.Second)
				p.answer("-@900", ".50x900 | .60x1")
				if s, _ := w.State(); s.Live {
					t.Fatalf("the book %s is live without what was lost", showBook(s.Book))
				}
				if numbered {
					time.Sleep(4 * time.Second)
					p.answer(fmt.Sprintf("-@%d", n-2), ".50x1 | .60x1")
					if s, _ := w.State(); !s.Live || showBook(s.Book) != fmt.Sprintf(".50x%d | .60x1", n) {
						t.Fatalf("live %t, %s", s.Live, showBook(s.Book))
					}
					return
				}
				late := bookMessage("T", "", 0, ".50x900 | .60x1")
				late.Time = time.Unix(900, 0)
				r.Message(late)
				if s, _ := w.State(); s.Live {
					t.Fatalf("the book %s is live without what was lost", showBook(s.Book))
				}
			})
		})
	}
}

// TestAnOldAnswerIsNoState: a state from before the topic's changes were buffered lacks changes that never come. It is read again when
// the venue has a newer one, and the connection is kept meanwhile.
func TestAnOldAnswerIsNoState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{age: market.Age{Known: true, Least: 20 * time.Second, Most: 21 * time.Second, Renewed: 30 * time.Second}}
		r := newTestFeed(t, func(c *Config) { c.Origin = o })
		reader, w := r.watch(t, bookOf("T"))
		defer reader.Close()
		p := &player{t: t, key: bookOf("T"), origin: o}
		r.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		p.answer("41", ".50x41 | .60x1")
		if s, _ := w.State(); s.Live || s.Known {
			t.Errorf("live %t with a book from before it was followed", s.Live)
		}
		time.Sleep(29 * time.Second)
		if synctest.Wait(); o.started != 1 || r.Stats().Reconnects != 0 {
			t.Errorf("%d reads, %d reconnects", o.started, r.Stats().Reconnects)
		}
		time.Sleep(5 * time.Second)
		p.answer("41", ".50x42 | .60x1") // as old, but from after the buffering began
		if s, _ := w.State(); !s.Live || showBook(s.Book) != ".50x42 | .60x1" {
			t.Errorf("live %t, %s", s.Live, showBook(s.Book))
		}
	})
}

// TestAnswersThatNobodyWaitsForAreDropped lets reads end after the snapshot, and after the connection, that they waited
// with.
func TestAnswersThatNobodyWaitsForAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{deaf: true}
		r := newTestFeed(t, func(c *Config) { c.Origin = o })
		reader, w := r.watch(t, bookOf("T"))
		defer reader.Close()
		p := &player{t: t, key: bookOf("T"), origin: o}
		r.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r.Message(bookMessage("T", "A", 41, ".50x41 | .60x1"))
		p.answer("A99", ".50x99 | .60x1")
		if s, _ := w.State(); !s.Live || s.Seq != 41 {
			t.Errorf("live %t at %d", s.Live, s.Seq)
		}
		r.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		r.downNow(bookOf("T"))
		p.answer("A99", ".50x99 | .60x1")
		if s, _ := w.State(); s.Live || s.Seq != 41 {
			t.Errorf("live %t at %d", s.Live, s.Seq)
		}
	})
}

// TestSplicedBookReachesAsFarAsItsChanges reads a book deeper than its stream reaches: what lies below would never change.
func TestSplicedBookReachesAsFarAsItsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{}
		r := newTestFeed(t, func(c *Config) { c.Origin = o })
		reader, w := r.watch(t, bookOf("T"))
		defer reader.Close()
		r.upNow(bookOf("T"))
		time.Sleep(4 * time.Second)
		p := &player{t: t, key: bookOf("T"), origin: o}
		p.answer("A41", ".50x1 .49x1 .48x1 | .60x1")
		m := deltaMessage("T", "A", 42, "b.50x2")
		m.Depth = 2
		r.Message(m)
		s, _ := w.State()
		if showBook(s.Book) != ".50x2 .49x1 | .60x1" || s.Book.Depth != 2 || s.Book.Covers(3) {
			t.Errorf("the book is %s, of depth %d", showBook(s.Book), s.Book.Depth)
		}
	})
}

// TestReadsAreBounded needs the state of many tokens at once.
func TestReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{}
		r := newTestFeed(t, func(c *Config) { c.Origin = o })
		reader := r.NewReader()
		defer reader.Close()
		var topics []market.Topic
		for i := range 100 {
			topics = append(topics, bookOf(fmt.Sprint(i)))
			if _, err := reader.Watch(topics[i], nil); err != nil {
				t.Fatal(err)
			}
		}
		r.Up("A", topics)
		time.Sleep(5 * time.Second)
		answered := 0
		for synctest.Wait(); o.first() != nil; synctest.Wait() {
			r := o.first()
			r.answer <- market.Message{Book: parseBook(r.id, ".50x1 | .60x1")}
			answered++
		}
		if o.most != maxReads || answered != 100 || r.Stats().Spliced != 100 {
			t.Errorf("%d reads at once, %d answered, %+v", o.most, answered, r.Stats())
		}
	})
}

// TestReadsAreBackedOff lets every read fail for an hour.
func TestReadsAreBackedOff(t *testing.T) {
	for _, key := range []market.Topic{priceOf("T"), bookOf("T")} {
		t.Run(string(key.Channel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &origin{}
				r := newTestFeed(t, func(c *Config) { c.Origin = o })
				reader, _ := r.watch(t, key)
				defer reader.Close()
				r.upNow(key)
				end := time.Now().Add(time.Hour)
				for time.Now().Before(end) {
					if synctest.Wait(); o.first() != nil {
						o.first().err <- errors.New("the venue is away")
					}
					time.Sleep(time.Second)
				}
				if o.started < 25 || o.started > 60 {
					t.Errorf("%d reads in an hour", o.started)
				}
				for i := 9; i < len(o.times); i++ {
					if d := o.times[i].Sub(o.times[i-1]); d < maxReadDelay/2 || d > maxReadDelay+5*time.Second {
						t.Errorf("%v between two reads", d)
					}
				}
			})
		})
	}
}

// TestCloseWaitsForReads closes topics, and the feed, while states are being read.
func TestCloseWaitsForReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &origin{}
		r := newTestFeed(t, func(c *Config) { c.Origin, c.Linger = o, time.Second })
		reader, w := r.watch(t, bookOf("T"))
		other, _ := r.watch(t, bookOf("U"))
		r.upNow(bookOf("T"), bookOf("U"))
		time.Sleep(4 * time.Second)
		if synctest.Wait(); o.under() != 2 {
			t.Fatalf("%d reads are under way", o.under())
		}
		reader.Close() // the linger of T ends and nobody needs its state
		time.Sleep(1100 * time.Millisecond)
		if synctest.Wait(); o.under() != 1 || strings.Join(r.up.open(), " ") != "orderbook U" {
			t.Fatalf("%d reads are under way, %q open", o.under(), r.up.open())
		}
		if s, _ := w.State(); s.Known || r.sink.of(bookOf("T")) != nil {
			t.Errorf("a topic that was closed is known")
		}
		r.Close()
		if o.under() != 0 {
			t.Error("a read goes on after Close")
		}
		other.Close()
	})
}
