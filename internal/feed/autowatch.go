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
	// A token that is polled pollsToWatch times within pollWindow gets an auto-watch. The auto-watch is closed autoWatchFor
	// after the last poll.
	pollsToWatch = 3
	pollWindow   = 10 * time.Second
	autoWatchFor = 30 * time.Second
	// retryEvery is how often the auto-watches without room are tried again.
	retryEvery = time.Second
)

// autoWatcher watches topics that queries poll often, so that these polls cost no calls to the venue. Auto-watches take at
// most half of the room. When that half is full, callers with few auto-watches replace those of callers with many.
type autoWatcher struct {
	feed *Feed
	size int

	// mu protects all fields below. It may be taken under the feed's lock. Topics' locks may be taken under mu.
	mu sync.Mutex
	// polls counts the recent polls of topics without an auto-watch.
	polls   *lru.Cache[market.Topic, *pollTimes]
	watches map[market.Topic]*autoWatch
	// byToken has the same auto-watches as watches, for the lookup of each query.
	byToken map[market.Channel]map[string]*autoWatch
	// callers has the callers with an auto-watch.
	callers map[string]*autoCaller
	// changes counts the auto-watches that were added or removed.
	changes uint64
	failed  searchFailure
	// expiry removes auto-watches without recent polls. It is nil while there are none.
	expiry *time.Timer
	closed bool
}

// autoWatch is the watch of a topic that is polled often.
type autoWatch struct {
	key market.Topic
	// caller opened the auto-watch. polled is the time of the last poll by any caller.
	caller *autoCaller
	polled time.Time
	// watch is nil while the topic is being opened and while there is no room for it.
	watch   *Watch
	opening bool
}

// autoCaller is a caller with auto-watches.
type autoCaller struct {
	name  string
	count int // its auto-watches; never 0
}

// searchFailure remembers that a caller with count auto-watches found none to replace. Callers with as many skip the search
// until the time is over or the auto-watches change.
type searchFailure struct {
	count   int
	changes uint64
	until   time.Time
}

// pollTimes has the times of a topic's recent polls, and the number of the last one.
type pollTimes struct {
	times    []time.Time
	lastPoll uint64
}

func newAutoWatcher(f *Feed) *autoWatcher {
	size := max(f.cfg.Topics/2, 1)
	recent, err := lru.New[market.Topic, *pollTimes](10 * size)
	if err != nil {
		panic("feed: " + err.Error()) // the size is below 1
	}
	return &autoWatcher{feed: f, size: size, polls: recent, watches: make(map[market.Topic]*autoWatch), byToken: make(map[market.Channel]map[string]*autoWatch), callers: make(map[string]*autoCaller)}
}

// recordPolls counts a caller's polls of tokens. It opens auto-watches for tokens that were polled often enough.
func (d *autoWatcher) recordPolls(by uint64, caller string, c market.Channel, tokenIDs []string, enough int) {
	if d.feed.upstream == nil {
		return // there is no stream
	}
	now := d.feed.cfg.Clock.Now()
	var opening []*autoWatch
	d.mu.Lock()
	// Without room polls are not counted, because most of them could not open an auto-watch.
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
			key.ID = strings.Clone(id) // the id may be part of a whole request
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

// makeRoom makes room for one more auto-watch of a caller. It removes one of a caller that has at least two more. Otherwise
// it removes one that was not polled within pollWindow, of a caller that has at least as many. It reports whether there is
// room. The caller holds the lock.
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

// isFull reports whether a search for a caller with held auto-watches is known to find nothing. The caller holds the lock.
func (d *autoWatcher) isFull(held int, now time.Time) bool {
	return len(d.watches) >= d.size && d.failed.changes == d.changes && held >= d.failed.count && !now.After(d.failed.until)
}

// count returns the number of a caller's auto-watches. The caller holds the lock.
func (d *autoWatcher) count(caller string) int {
	if h := d.callers[caller]; h != nil {
		return h.count
	}
	return 0
}

// victim returns the matching auto-watch to remove first: of the caller with the most, the one that was polled longest ago.
// It returns nil if none matches. The caller holds the lock.
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

// add adds an auto-watch, which must be opened next. The caller holds the lock.
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

// remove removes an auto-watch and closes its watch. The caller holds the lock.
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

// open opens auto-watches. Those without room are tried again by expire.
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
		case d.watches[w.key] != w: // removed in the meantime
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

// expire removes auto-watches without recent polls, and those that the upstream refused. It tries again to open those
// without room.
func (d *autoWatcher) expire() {
	now := d.feed.cfg.Clock.Now()
	least := retryEvery
	next := autoWatchFor
	var opening []*autoWatch
	d.mu.Lock()
	if d.expiry != nil {
		d.expiry.Stop() // open may have reset the timer
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

// giveWay removes an auto-watch whose topic nobody else watches, to make room for a subscriber. It reports whether it found
// one. The caller holds the feed's lock.
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
