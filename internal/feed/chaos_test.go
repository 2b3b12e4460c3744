package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/cache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
	"oddsgraph/internal/venue"
	"oddsgraph/tests/tool"
)

// The parameters of the chaos tests.
const (
	chaosTokens  = 20
	chaosLinks   = 3
	chaosUpdates = 10_000
	chaosTick    = 10 * time.Millisecond
	chaosBurst   = 12 * time.Second // the length of a burst, a period with random faults
	chaosCalm    = 12 * time.Second // the length of a calm, a period without random faults
	chaosQuiet   = time.Second      // the time without updates at the end of a calm, in which all frames arrive
	chaosTail    = 3 * time.Second  // the time from the start of a calm to the call of loseLastFrames
	chaosBeat    = 3 * time.Second
	chaosHeal    = 5 * time.Second
	chaosTicks   = 1000 // the number of ticks from 0 to 1, so prices are 0.001 to 0.999
)

var chaosDepths = [...]int{1, 5, 20, 200}

// decimals contains decimals for integers: the key {0, n} has the price n/1000, and the key {1, n} has the size n. ticks maps the
// text of the price n/1000 to n.
var decimals, ticks = func() (map[[2]int32]market.Decimal, map[string]int32) {
	d, back := make(map[[2]int32]market.Decimal), make(map[string]int32)
	for i := range int32(chaosTicks) {
		for e, exponent := range []int32{-3, 0} {
			v := market.NewDecimal(int64(i), exponent)
			d[[2]int32{int32(e), i}] = v
			if e == 0 {
				back[v.Reduce().String()] = i
			}
		}
	}
	return d, back
}()

// chaos is a venue, faulty links, a feed, readers and a cache.
type chaos struct {
	venue.Reader // nil, because the cache calls only methods that chaos implements itself

	rand   *rand.Rand
	feed   *Feed
	cache  *cache.Cache
	epoch  int
	tokens []*token
	links  []*link

	mu       sync.Mutex // protects history, prices, requests, calls and failure
	history  map[stateID]venueBook
	prices   map[stateID]int32
	requests []request
	calls    int

	faulty     bool
	bursts     int // the number of bursts whose calm has ended
	burstTicks int // the number of ticks of the current burst
	faults     map[string]int
	frameCount int // the number of frames that were queued
	published  int // the number of updates
	readers    []*replayer
	failure    error
}

func (c *chaos) chance(percent float64) bool { return c.rand.Float64()*100 < percent }

// inject decides at random whether to inject a fault now. If it returns true, it has counted the fault and set lastFault of the
// affected topics. The calling function then causes the fault.
func (c *chaos) inject(fault string, percent float64, touched ...*linkTopic) bool {
	if !c.faulty || !c.chance(percent) {
		return false
	}
	c.faults[fault]++
	for _, k := range touched {
		k.lastFault = time.Now()
	}
	return true
}

func (c *chaos) epochName() string { return fmt.Sprintf("e%d", c.epoch) }

// run alternates bursts and calms until at least chaosUpdates updates were published. It returns an error for a wrong book, or for
// a topic that does not recover.
func (c *chaos) run(ctx context.Context) error {
	watches := make(map[*token][2]*Watch)
	keeper := c.feed.NewReader("reader")
	defer keeper.Close()
	for i, k := range c.tokens {
		price, err := keeper.Watch(priceOf(k.id), nil)
		if err != nil {
			return err
		}
		book, err := keeper.Watch(bookOf(k.id), nil)
		if err != nil {
			return err
		}
		watches[k] = [2]*Watch{price, book}
		for j, depth := range chaosDepths {
			r := &replayer{chaos: c, token: k, depth: depth, every: []int{1, 3, 17, 60}[(i+j)%4], reasons: make(map[string]int), reader: c.feed.NewReader("reader")}
			defer r.reader.Close()
			if r.watch, err = r.reader.Watch(bookOf(k.id), nil); err != nil {
				return err
			}
			c.readers = append(c.readers, r)
		}
	}
	c.listen()
	turn := time.Now()
	c.faulty = true
	lost := false
	for n := 0; ; n++ {
		time.Sleep(chaosTick)
		synctest.Wait()
		now := time.Now()
		age := now.Sub(turn)
		if wasFaulty := c.faulty; age >= chaosBurst+chaosCalm {
			if c.published >= chaosUpdates {
				return nil
			}
			turn, c.faulty, c.burstTicks, lost = now, true, 0, false
			c.bursts++
		} else if c.faulty = age < chaosBurst; wasFaulty && !c.faulty {
			c.startCalm()
		} else if !lost && age >= chaosBurst+chaosTail {
			lost = true
			c.loseLastFrames()
		}
		if c.faulty || age < chaosBurst+chaosCalm-chaosQuiet {
			for range 2 + c.rand.IntN(4) {
				if k := c.tokens[c.rand.IntN(len(c.tokens))]; !now.Before(k.quietUntil) {
					c.publish(k)
				}
			}
		}
		c.breakConnections()
		c.listen()
		for _, l := range c.links {
			c.subscribe(l)
			c.resend(l)
			c.beat(l)
			c.deliver(l)
		}
		synctest.Wait()
		for i, r := range c.readers {
			if (n+i)%r.every == 0 {
				if err := r.read(); err != nil {
					return err
				}
			}
		}
		for _, k := range c.tokens {
			if err := c.checkToken(ctx, k, watches[k], n); err != nil {
				return err
			}
		}
		c.mu.Lock()
		err := c.failure
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if c.faulty || age < chaosBurst+chaosCalm-chaosTick {
			continue
		}
		for _, r := range c.readers { // at the end of a calm, each reader must have the latest state
			if err := r.read(); err != nil {
				return err
			}
			if !r.live {
				return fmt.Errorf("hang: the reader of %s at depth %d was not signalled that the book is live", r.token.id, r.depth)
			}
			if want := r.token.now.cut(r.depth); !slices.EqualFunc(r.book.Bids.Levels(), want.bids, func(l market.Level, x tickLevel) bool { return tickOf(l.Price) == x.tick && sizeOf(l.Size) == x.size }) {
				return fmt.Errorf("hang: the reader of %s at depth %d has the old book %v, but the venue has the sequence number %d", r.token.id, r.depth, stateIDOf(r.book), r.token.seq)
			}
		}
	}
}

// playChaos runs a chaos whose random numbers depend on seed.
func playChaos(t *testing.T, seed uint64) (c *chaos, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c = &chaos{
			rand: rand.New(rand.NewPCG(seed, 0)), history: make(map[stateID]venueBook), prices: make(map[stateID]int32), faults: make(map[string]int),
		}
		for i := range chaosTokens {
			k := &token{id: fmt.Sprintf("T%02d", i), numbered: i < chaosTokens-3, levels: 20 + 3*i, seq: uint64(c.rand.IntN(100)) + 1, priceSeq: 1}
			if i < 2 {
				k.levels = 230
			}
			c.tokens = append(c.tokens, k)
			c.resetBook(k)
			k.now = k.streamedBook()
			c.remember(k)
		}
		for range chaosLinks {
			c.links = append(c.links, &link{topics: make(map[messages.Topic]*linkTopic), upAt: time.Now()})
		}
		c.cache = cache.New(c, cache.DefaultConfig())
		defer c.cache.Close()
		c.feed = New(Config{Sink: c.cache})
		c.feed.Connect(c)
		defer c.feed.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err = c.run(ctx)
	})
	return c, err
}

// TestChaos checks that faulty links cause no wrong event and no wrong query result, and that all topics recover. Each seed
// publishes at least 10,000 updates of 20 tokens. CHAOS=60 in the environment adds 60 seeds.
func TestChaos(t *testing.T) {
	seeds := []uint64{1, 2, 3}
	if tool.Raced {
		// With the race detector, a run takes ten times as long, so only one seed runs. More seeds do not find other races.
		seeds = seeds[:1]
	}
	if n, err := strconv.Atoi(os.Getenv("CHAOS")); err == nil {
		for i := range n {
			seeds = append(seeds, uint64(100+i))
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			c, err := playChaos(t, seed)
			events, reasons := 0, make(map[string]int)
			for _, r := range c.readers {
				events += r.events
				for reason, n := range r.reasons {
					reasons[reason] += n
				}
			}
			t.Logf("seed %d: %d updates, %d events with the reasons %v, faults %v, %d calls, %+v", seed, c.published, events, reasons, c.faults, c.calls, c.feed.Stats())
			if err != nil {
				t.Fatal(err)
			}
			for _, fault := range []string{"drop", "duplicate", "reorder", "skipped number", "lost snapshot", "slow snapshot", "lost last frame",
				"stall", "restart", "restart without a close", "half an update", "crossed snapshot", "close", "put off", "subscribed anew"} {
				if c.faults[fault] == 0 {
					t.Errorf("there was no fault of the kind %q", fault)
				}
			}
			for _, reason := range []string{"INITIAL", "CHANGE", "RESYNC", "FRESHNESS"} {
				if reasons[reason] == 0 {
					t.Errorf("there was no event of the reason %s", reason)
				}
			}
		})
	}
}
