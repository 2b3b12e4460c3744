package feed

import (
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
)

const (
	// pollsToWatch polls of a token within pollWindow open an auto-watch. It closes autoWatchFor after the last poll.
	pollsToWatch = 3
	pollWindow   = 10 * time.Second
	autoWatchFor = 30 * time.Second
	// retryEvery is how often auto-watches are tried again that the upstream had no room for.
	retryEvery = time.Second
)

// demand watches what queries ask for again and again, so that polling clients cost the venue nothing. What is watched so
// is warm. It is at most half of the room; where that is full, callers who have little of it replace what those have who
// have much.
type autoWatcher struct {
	feed *Feed
	size int

	// mu protects all below. It may be taken under the feed's lock, and topics' locks under it.
	mu sync.Mutex
	// asks are the topics that were asked for lately.
	polls   *lru.Cache[market.Topic, *pollTimes]
	watches map[market.Topic]*autoWatch
	// tokens is warm by channel and token, which every query looks into.
	byToken map[market.Channel]map[string]*autoWatch
	// holders are the callers who have made something warm.
	callers map[string]*autoCaller
	// changes counts what has become warm and what was let go.
	changes uint64
	failed  searchFailure
	// sweep lets go of what nobody asks for any more; nil while nothing is watched.
	expiry *time.Timer
	closed bool
}

// warm is a topic that is watched because it is asked for.
type autoWatch struct {
	key market.Topic
	// holder is who has made it warm, asked when anybody has asked for it last.
	caller *autoCaller
	polled time.Time
	// watch is nil while it is being opened, and until there is room for it.
	watch   *Watch
	opening bool
}

// holder is a caller who has made something warm.
type autoCaller struct {
	name  string
	count int // topics; never 0
}

// refusal is that there was no space for a caller who had held topics. It stands until a time for all who have as much,
// unless something changes.
type searchFailure struct {
	count   int
	changes uint64
	until   time.Time
}

// asks are when a topic was asked for, and by which demand it was last.
type pollTimes struct {
	times    []time.Time
	lastPoll uint64
}

func newAutoWatcher(f *Feed) *autoWatcher {
	size := max(f.cfg.Topics/2, 1)
	recent, err := lru.New[market.Topic, *pollTimes](10 * size)
	if err != nil {
		panic("feed: " + err.Error()) // only for a size below 1
	}
	return &autoWatcher{feed: f, size: size, polls: recent, watches: make(map[market.Topic]*autoWatch), byToken: make(map[market.Channel]map[string]*autoWatch), callers: make(map[string]*autoCaller)}
}

// asked notes that a caller has asked for what a channel tells of tokens, and opens those topics that were asked for often
// enough to be warm.
func (d *autoWatcher) recordPolls(by uint64, caller string, c market.Channel, tokenIDs []string, enough int) {
	if d.feed.upstream == nil {
		return // nothing can be watched
	}
	now := d.feed.cfg.Clock.Now()
	var opening []*autoWatch
	d.mu.Lock()
	// Where there is no space asks are not counted either: most are of tokens that are not warm then.
	full := d.isFull(d.count(caller), now)
	tokens := d.byToken[c]
	for _, id := range tokenIDs {
		if w := tokens[id]; w != nil {
			w.polled = now
			continue
		}
		if full {
			continue
		}
		key := market.Topic{Channel: c, ID: id}
		a, known := d.polls.Get(key)
		if !known {
			a = new(pollTimes)
		} else if by != 0 && a.lastPoll == by {
			continue
		}
		a.times, a.lastPoll = append(slices.DeleteFunc(a.times, func(at time.Time) bool { return now.Sub(at) > pollWindow }), now), by
		if !known || len(a.times) >= enough {
			key.ID = strings.Clone(id) // which is kept, and may be a part of all that a client has sent
		}
		if len(a.times) >= enough && !d.closed {
			if d.makeRoom(caller, now) {
				d.polls.Remove(key)
				opening = append(opening, d.add(key, caller, now))
				tokens = d.byToken[c]
				continue
			}
			full = true
		}
		a.times = slices.Delete(a.times, 0, max(0, len(a.times)-pollsToWatch))
		if !known {
			d.polls.Add(key, a)
		}
	}
	if len(opening) > 0 && d.expiry == nil {
		d.expiry = time.AfterFunc(autoWatchFor, d.expire)
	}
	d.mu.Unlock()
	d.open(opening)
}

// space makes space for one more topic of a caller's where there is none. It takes that of callers who have more than one
// more, or else what nobody has lately asked for, of callers who have no less. It reports whether there is space. The lock
// is held.
func (d *autoWatcher) makeRoom(caller string, now time.Time) bool {
	if len(d.watches) < d.size {
		return true
	}
	own := d.count(caller)
	if d.isFull(own, now) {
		return false
	}
	within := pollWindow
	until := now.Add(within)
	w := d.victim(func(w *autoWatch) bool {
		if w.caller.count > own+1 {
			return true
		}
		if w.caller.count < own {
			return false
		}
		if free := w.polled.Add(within); free.Before(until) {
			until = free
		}
		return now.Sub(w.polled) > within
	})
	if w == nil {
		d.failed = searchFailure{own, d.changes, until}
		return false
	}
	d.remove(w)
	return true
}

// full reports whether it is known that there is no space for somebody who has so much. The lock is held.
func (d *autoWatcher) isFull(held int, now time.Time) bool {
	return len(d.watches) >= d.size && d.failed.changes == d.changes && held >= d.failed.count && !now.After(d.failed.until)
}

// held is how much is warm for a caller. The lock is held.
func (d *autoWatcher) count(caller string) int {
	if h := d.callers[caller]; h != nil {
		return h.count
	}
	return 0
}

// least returns what is to go first among the topics that fit: of the caller who has most, what was asked for longest ago.
// It returns nil where none fits. The lock is held.
func (d *autoWatcher) victim(fits func(*autoWatch) bool) (least *autoWatch) {
	for _, w := range d.watches {
		if least != nil {
			if a, b := w.caller.count, least.caller.count; a < b || a == b && !w.polled.Before(least.polled) {
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
func (d *autoWatcher) add(key market.Topic, caller string, now time.Time) *autoWatch {
	h := d.callers[caller]
	if h == nil {
		h = &autoCaller{name: caller}
		d.callers[caller] = h
	}
	h.count++
	d.changes++
	w := &autoWatch{key: key, caller: h, polled: now, opening: true}
	d.watches[key] = w
	if d.byToken[key.Channel] == nil {
		d.byToken[key.Channel] = make(map[string]*autoWatch)
	}
	d.byToken[key.Channel][key.ID] = w
	return w
}

// remove lets go of a warm topic. The lock is held.
func (d *autoWatcher) remove(w *autoWatch) {
	delete(d.watches, w.key)
	delete(d.byToken[w.key.Channel], w.key.ID)
	d.changes++
	if w.caller.count--; w.caller.count == 0 {
		delete(d.callers, w.caller.name)
	}
	if w.watch != nil {
		w.watch.Close()
	}
}

// open watches warm topics. Those that there is no room for wait for the next sweep.
func (d *autoWatcher) open(opening []*autoWatch) {
	room := true
	for _, w := range opening {
		var watch *Watch
		var err error
		if room {
			watch, err = d.feed.watchForQueries(w.key)
			room = market.CodeOf(err) != market.CodeRateLimited
		}
		d.mu.Lock()
		w.opening = false
		switch {
		case d.watches[w.key] != w: // it was let go meanwhile
			if watch != nil {
				watch.Close()
			}
		case err != nil && room:
			d.remove(w)
		default:
			w.watch = watch
			if watch == nil && d.expiry != nil {
				d.expiry.Reset(retryEvery)
			}
		}
		d.mu.Unlock()
	}
}

// cool lets go of what nobody has asked for lately, and of what the upstream has refused, which may be asked for again. It
// tries again to watch what there was no room for.
func (d *autoWatcher) expire() {
	now := d.feed.cfg.Clock.Now()
	least := retryEvery
	next := autoWatchFor
	var opening []*autoWatch
	d.mu.Lock()
	if d.expiry != nil {
		d.expiry.Stop() // it may have been set again since it went off
		d.expiry = nil
	}
	for _, w := range d.watches {
		left := autoWatchFor - now.Sub(w.polled)
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
	if len(d.watches) > 0 && !d.closed {
		d.expiry = time.AfterFunc(max(next, least), d.expire)
	}
	d.mu.Unlock()
	d.open(opening)
}

// yield gives up a warm topic that makes room, for the sake of a subscriber. It reports whether there was one. The feed's
// lock is held.
func (d *autoWatcher) giveWay() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.victim(func(w *autoWatch) bool { return w.watch != nil && w.watch.isOnly() })
	if w == nil {
		return false
	}
	d.remove(w)
	d.feed.closeIdle(w.watch.topic)
	return true
}

func (d *autoWatcher) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.expiry != nil {
		d.expiry.Stop()
		d.expiry = nil
	}
	for _, w := range d.watches {
		d.remove(w)
	}
}
