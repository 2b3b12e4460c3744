package feed

import (
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

// demand watches what queries ask for again and again, so that polling clients cost the venue nothing. What is watched so
// is warm. It is at most half of the room; where that is full, callers who have little of it replace what those have who
// have much.
type demand struct {
	feed *Feed
	size int

	// mu protects all below. It may be taken under the feed's lock, and topics' locks under it.
	mu sync.Mutex
	// asks are the topics that were asked for lately.
	asks *lru.Cache[market.Topic, *asks]
	warm map[market.Topic]*warm
	// tokens is warm by channel and token, which every query looks into.
	tokens map[market.Channel]map[string]*warm
	// holders are the callers who have made something warm.
	holders map[string]*holder
	// changes counts what has become warm and what was let go.
	changes uint64
	refused refusal
	// sweep lets go of what nobody asks for any more; nil while nothing is watched.
	sweep  *time.Timer
	closed bool
}

// warm is a topic that is watched because it is asked for.
type warm struct {
	key market.Topic
	// holder is who has made it warm, asked when anybody has asked for it last.
	holder *holder
	asked  time.Time
	// watch is nil while it is being opened, and until there is room for it.
	watch   *Watch
	opening bool
}

// holder is a caller who has made something warm.
type holder struct {
	caller string
	held   int // topics; never 0
}

// refusal is that there was no space for a caller who had held topics. It stands until a time for all who have as much,
// unless something changes.
type refusal struct {
	held    int
	changes uint64
	until   time.Time
}

// asks are when a topic was asked for, and by which demand it was last.
type asks struct {
	times []time.Time
	by    uint64
}

func newDemand(f *Feed) *demand {
	size := max(f.cfg.Topics/2, 1)
	recent, err := lru.New[market.Topic, *asks](10 * size)
	if err != nil {
		panic("feed: " + err.Error()) // only for a size below 1
	}
	return &demand{feed: f, size: size, asks: recent, warm: make(map[market.Topic]*warm), tokens: make(map[market.Channel]map[string]*warm), holders: make(map[string]*holder)}
}

// asked notes that a caller has asked for what a channel tells of tokens, and opens those topics that were asked for often
// enough to be warm.
func (d *demand) asked(by uint64, caller string, c market.Channel, tokenIDs []string, enough int) {
	if d.feed.upstream == nil {
		return // nothing can be watched
	}
	now := d.feed.cfg.Clock.Now()
	var opening []*warm
	d.mu.Lock()
	// Where there is no space asks are not counted either: most are of tokens that are not warm then.
	full := d.full(d.held(caller), now)
	tokens := d.tokens[c]
	for _, id := range tokenIDs {
		if w := tokens[id]; w != nil {
			w.asked = now
			continue
		}
		if full {
			continue
		}
		key := market.Topic{Channel: c, ID: id}
		a, known := d.asks.Get(key)
		if !known {
			a = new(asks)
		} else if by != 0 && a.by == by {
			continue
		}
		a.times, a.by = append(slices.DeleteFunc(a.times, func(at time.Time) bool { return now.Sub(at) > d.feed.cfg.WarmWithin }), now), by
		if !known || len(a.times) >= enough {
			key.ID = strings.Clone(id) // which is kept, and may be a part of all that a client has sent
		}
		if len(a.times) >= enough && !d.closed {
			if d.space(caller, now) {
				d.asks.Remove(key)
				opening = append(opening, d.add(key, caller, now))
				tokens = d.tokens[c]
				continue
			}
			full = true
		}
		a.times = slices.Delete(a.times, 0, max(0, len(a.times)-d.feed.cfg.WarmAsks))
		if !known {
			d.asks.Add(key, a)
		}
	}
	if len(opening) > 0 && d.sweep == nil {
		d.sweep = time.AfterFunc(d.feed.cfg.WarmFor, d.cool)
	}
	d.mu.Unlock()
	d.open(opening)
}

// space makes space for one more topic of a caller's where there is none. It takes that of callers who have more than one
// more, or else what nobody has lately asked for, of callers who have no less. It reports whether there is space. The lock
// is held.
func (d *demand) space(caller string, now time.Time) bool {
	if len(d.warm) < d.size {
		return true
	}
	own := d.held(caller)
	if d.full(own, now) {
		return false
	}
	within := d.feed.cfg.WarmWithin
	until := now.Add(within)
	w := d.least(func(w *warm) bool {
		if w.holder.held > own+1 {
			return true
		}
		if w.holder.held < own {
			return false
		}
		if free := w.asked.Add(within); free.Before(until) {
			until = free
		}
		return now.Sub(w.asked) > within
	})
	if w == nil {
		d.refused = refusal{own, d.changes, until}
		return false
	}
	d.remove(w)
	return true
}

// full reports whether it is known that there is no space for somebody who has so much. The lock is held.
func (d *demand) full(held int, now time.Time) bool {
	return len(d.warm) >= d.size && d.refused.changes == d.changes && held >= d.refused.held && !now.After(d.refused.until)
}

// held is how much is warm for a caller. The lock is held.
func (d *demand) held(caller string) int {
	if h := d.holders[caller]; h != nil {
		return h.held
	}
	return 0
}

// least returns what is to go first among the topics that fit: of the caller who has most, what was asked for longest ago.
// It returns nil where none fits. The lock is held.
func (d *demand) least(fits func(*warm) bool) (least *warm) {
	for _, w := range d.warm {
		if least != nil {
			if a, b := w.holder.held, least.holder.held; a < b || a == b && !w.asked.Before(least.asked) {
				continue
			}
		}
		if fits(w) {
			least = w
		}
	}
	return least
}

// add makes a topic warm for a caller, who is to open it. The lock is held.
func (d *demand) add(key market.Topic, caller string, now time.Time) *warm {
	h := d.holders[caller]
	if h == nil {
		h = &holder{caller: caller}
		d.holders[caller] = h
	}
	h.held++
	d.changes++
	w := &warm{key: key, holder: h, asked: now, opening: true}
	d.warm[key] = w
	if d.tokens[key.Channel] == nil {
		d.tokens[key.Channel] = make(map[string]*warm)
	}
	d.tokens[key.Channel][key.ID] = w
	return w
}

// remove lets go of a warm topic. The lock is held.
func (d *demand) remove(w *warm) {
	delete(d.warm, w.key)
	delete(d.tokens[w.key.Channel], w.key.ID)
	d.changes++
	if w.holder.held--; w.holder.held == 0 {
		delete(d.holders, w.holder.caller)
	}
	if w.watch != nil {
		w.watch.Close()
	}
}

// open watches warm topics. Those that there is no room for wait for the next sweep.
func (d *demand) open(opening []*warm) {
	room := true
	for _, w := range opening {
		var watch *Watch
		var err error
		if room {
			watch, err = d.feed.keep(w.key)
			room = market.CodeOf(err) != market.CodeRateLimited
		}
		d.mu.Lock()
		w.opening = false
		switch {
		case d.warm[w.key] != w: // it was let go meanwhile
			if watch != nil {
				watch.Close()
			}
		case err != nil && room:
			d.remove(w)
		default:
			w.watch = watch
			if watch == nil && d.sweep != nil {
				d.sweep.Reset(d.feed.cfg.WarmFor / 30)
			}
		}
		d.mu.Unlock()
	}
}

// cool lets go of what nobody has asked for lately, and of what the upstream has refused, which may be asked for again. It
// tries again to watch what there was no room for.
func (d *demand) cool() {
	now := d.feed.cfg.Clock.Now()
	least := d.feed.cfg.WarmFor / 30
	next := d.feed.cfg.WarmFor
	var opening []*warm
	d.mu.Lock()
	if d.sweep != nil {
		d.sweep.Stop() // it may have been set again since it went off
		d.sweep = nil
	}
	for _, w := range d.warm {
		left := d.feed.cfg.WarmFor - now.Sub(w.asked)
		if left <= 0 || w.watch != nil && w.watch.ended() {
			d.remove(w)
			continue
		}
		if w.watch == nil {
			next = least
			if !w.opening {
				w.opening = true
				opening = append(opening, w)
			}
		}
		next = min(next, left)
	}
	if len(d.warm) > 0 && !d.closed {
		d.sweep = time.AfterFunc(max(next, least), d.cool)
	}
	d.mu.Unlock()
	d.open(opening)
}

// yield gives up a warm topic that makes room, for the sake of a subscriber. It reports whether there was one. The feed's
// lock is held.
func (d *demand) yield() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.least(func(w *warm) bool { return w.watch != nil && w.watch.sole() })
	if w == nil {
		return false
	}
	d.remove(w)
	d.feed.drop(w.watch.topic)
	return true
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
		d.remove(w)
	}
}
