package feed

import (
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

// demand watches the tokens that queries ask for again and again, so that polling clients cost the venue nothing.
type demand struct {
	feed *Feed

	// mu protects all below. It may be taken under the feed's lock, and topics' locks under it.
	mu sync.Mutex
	// asks are the tokens that were asked for lately.
	asks *lru.Cache[string, asks]
	warm map[string]*warm
	// sweep lets go of tokens that nobody asks for any more; nil while none is watched.
	sweep  *time.Timer
	closed bool
}

// warm is a token that is watched because it is asked for. Its watches are nil while they are being opened.
type warm struct {
	asked   time.Time
	watches []*Watch
}

// asks are when a token was asked for, and by which demand it was last.
type asks struct {
	times []time.Time
	by    uint64
}

func newDemand(f *Feed) *demand {
	recent, err := lru.New[string, asks](10 * f.cfg.WarmTokens)
	if err != nil {
		panic("feed: " + err.Error()) // only for a size below 1
	}
	return &demand{feed: f, asks: recent, warm: make(map[string]*warm)}
}

// asked notes that tokens were asked for, and opens those that were so often enough to be warm.
func (d *demand) asked(by uint64, tokenIDs []string, enough int) {
	now := d.feed.cfg.Clock.Now()
	var opening []string
	d.mu.Lock()
	for _, id := range tokenIDs {
		if w := d.warm[id]; w != nil {
			w.asked = now
			continue
		}
		before, _ := d.asks.Get(id)
		if by != 0 && before.by == by {
			continue
		}
		times := append(slices.DeleteFunc(before.times, func(at time.Time) bool { return now.Sub(at) > d.feed.cfg.WarmWithin }), now)
		if len(times) < enough || len(d.warm) >= d.feed.cfg.WarmTokens || d.closed {
			d.asks.Add(id, asks{times[max(0, len(times)-d.feed.cfg.WarmAsks):], by})
			continue
		}
		d.asks.Remove(id)
		d.warm[id] = &warm{asked: now}
		opening = append(opening, id)
	}
	if len(opening) > 0 && d.sweep == nil {
		d.sweep = time.AfterFunc(d.feed.cfg.WarmFor, d.cool)
	}
	d.mu.Unlock()
	for _, id := range opening {
		d.open(id)
	}
}

// open watches a warm token's price and book.
func (d *demand) open(id string) {
	var watches []*Watch
	for _, c := range [...]market.Channel{market.ChannelPrices, market.ChannelOrderbook} {
		if w := d.feed.keep(market.Topic{Channel: c, ID: id}, nil); w != nil {
			watches = append(watches, w)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.warm[id]; w != nil && !d.closed && len(watches) > 0 {
		w.watches = watches
		return
	}
	delete(d.warm, id)
	closeAll(watches)
}

// cool closes the tokens that nobody has asked for lately, and those that the upstream has refused: they may be asked for
// again.
func (d *demand) cool() {
	now := d.feed.cfg.Clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sweep = nil
	next := d.feed.cfg.WarmFor
	for id, w := range d.warm {
		left := d.feed.cfg.WarmFor - now.Sub(w.asked)
		if w.watches != nil && (left <= 0 || slices.ContainsFunc(w.watches, (*Watch).ended)) {
			delete(d.warm, id)
			closeAll(w.watches)
			continue
		}
		next = min(next, left)
	}
	if len(d.warm) > 0 && !d.closed {
		d.sweep = time.AfterFunc(max(next, d.feed.cfg.WarmFor/30), d.cool)
	}
}

// yield gives up the warm token that was asked for longest ago among those that make room, for the sake of a subscriber.
// It reports whether there was one. The feed's lock is held.
func (d *demand) yield() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := ""
	for id, w := range d.warm {
		if (oldest == "" || w.asked.Before(d.warm[oldest].asked)) && slices.ContainsFunc(w.watches, (*Watch).sole) {
			oldest = id
		}
	}
	if oldest == "" {
		return false
	}
	watches := d.warm[oldest].watches
	delete(d.warm, oldest)
	closeAll(watches)
	for _, w := range watches {
		d.feed.drop(w.topic)
	}
	return true
}

func closeAll(watches []*Watch) {
	for _, w := range watches {
		w.Close()
	}
}

func (d *demand) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.sweep != nil {
		d.sweep.Stop()
		d.sweep = nil
	}
	for _, w := range d.warm {
		closeAll(w.watches)
	}
	clear(d.warm)
}
