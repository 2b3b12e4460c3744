package feed

import (
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/messages"
)

const (
	// A token that is polled pollsToWatch times within pollWindow gets an auto-watch. The auto-watch is closed autoWatchFor
	// after the last poll.
	pollsToWatch = 3
	pollWindow   = 10 * time.Second
	autoWatchFor = 30 * time.Second
	// retryEvery is the time between two attempts to open the auto-watches for which there was no room. See the package comment for
	// the meaning of room.
	retryEvery = time.Second
)

// autoWatcher watches topics that queries poll often, so that these polls need no calls to the venue. Auto-watches use at most
// half of the room. When that half is full, a caller with few auto-watches may replace an auto-watch of a caller with many.
type autoWatcher struct {
	feed *Feed
	size int

	// mu protects all fields below. It may be taken under the feed's lock. Topics' locks may be taken under mu.
	mu sync.Mutex
	// polls contains the recent polls of topics that have no auto-watch.
	polls   *lru.Cache[messages.Topic, *pollTimes]
	watches map[messages.Topic]*autoWatch
	// byToken contains the same auto-watches as watches, for fast look-ups by queries.
	byToken map[messages.Channel]map[string]*autoWatch
	// callers contains the callers that have an auto-watch.
	callers map[string]*autoCaller
	// changes is the number of additions and removals of auto-watches.
	changes uint64
	failed  searchFailure
	// expiry is the timer that calls expire. It is nil while there are no auto-watches.
	expiry *time.Timer
	closed bool
}

// autoWatch is the watch of a topic that queries poll often.
type autoWatch struct {
	key messages.Topic
	// caller is the caller whose poll opened the auto-watch. polled is the time of the last poll by any caller.
	caller *autoCaller
	polled time.Time
	// watch is nil while the topic is being opened and while there is no room for the topic.
	watch   *Watch
	opening bool
}

// autoCaller is a caller with auto-watches.
type autoCaller struct {
	name  string
	count int // the number of its auto-watches, which is never 0
}

// searchFailure is the result of a failed search for an auto-watch to replace. The field count is the number of auto-watches of the
// caller that searched. Callers with at least as many auto-watches skip the search until the time in the field until, or until an
// auto-watch is added or removed.
type searchFailure struct {
	count   int
	changes uint64
	until   time.Time
}

// pollTimes contains the times of a topic's recent polls and the number of the last poll.
type pollTimes struct {
	times    []time.Time
	lastPoll uint64
}

func newAutoWatcher(f *Feed) *autoWatcher {
	size := max(f.cfg.Topics/2, 1)
	recent, err := lru.New[messages.Topic, *pollTimes](10 * size)
	if err != nil {
		panic("feed: " + err.Error()) // only for a size below 1
	}
	return &autoWatcher{
		feed: f, size: size, polls: recent, watches: make(map[messages.Topic]*autoWatch),
		byToken: make(map[messages.Channel]map[string]*autoWatch), callers: make(map[string]*autoCaller),
	}
}

// recordPolls counts a caller's polls of tokens. It opens an auto-watch for each token that has at least as many recent polls as
// the parameter enough.
func (aw *autoWatcher) recordPolls(poll uint64, caller string, c messages.Channel, tokenIDs []string, enough int) {
	if aw.feed.upstream == nil {
		return // there is no stream
	}
	now := aw.feed.cfg.Clock.Now()
	var opening []*autoWatch
	aw.mu.Lock()
	// While there is no room, polls are not counted, because most of them could not open an auto-watch.
	full := aw.isFull(aw.count(caller), now)
	tokens := aw.byToken[c]
	for _, id := range tokenIDs {
		if w := tokens[id]; w != nil {
			w.polled = now
			continue
		}
		if full {
			continue
		}
		key := messages.Topic{Channel: c, ID: id}
		polls, known := aw.polls.Get(key)
		if !known {
			polls = new(pollTimes)
		} else if poll != 0 && polls.lastPoll == poll {
			continue
		}
		polls.times, polls.lastPoll = append(slices.DeleteFunc(polls.times, func(at time.Time) bool { return now.Sub(at) > pollWindow }), now), poll
		if !known || len(polls.times) >= enough {
			key.ID = strings.Clone(id) // without the copy, the key could keep a whole request in memory
		}
		if len(polls.times) >= enough && !aw.closed {
			if aw.makeRoom(caller, now) {
				aw.polls.Remove(key)
				opening = append(opening, aw.add(key, caller, now))
				tokens = aw.byToken[c]
				continue
			}
			full = true
		}
		polls.times = slices.Delete(polls.times, 0, max(0, len(polls.times)-pollsToWatch))
		if !known {
			aw.polls.Add(key, polls)
		}
	}
	if len(opening) > 0 && aw.expiry == nil {
		aw.expiry = time.AfterFunc(autoWatchFor, aw.expire)
	}
	aw.mu.Unlock()
	aw.open(opening)
}

// makeRoom makes room for another auto-watch of a caller and reports whether there is room. If necessary, it removes an auto-watch
// of another caller that has at least two auto-watches more than this caller. If there is no such caller, it removes an auto-watch
// that was not polled within pollWindow and whose caller has at least as many auto-watches as this caller. The caller holds the
// lock.
func (aw *autoWatcher) makeRoom(caller string, now time.Time) bool {
	if len(aw.watches) < aw.size {
		return true
	}
	own := aw.count(caller)
	if aw.isFull(own, now) {
		return false
	}
	until := now.Add(pollWindow)
	w := aw.victim(func(w *autoWatch) bool {
		if w.caller.count > own+1 {
			return true
		}
		if w.caller.count < own {
			return false
		}
		if free := w.polled.Add(pollWindow); free.Before(until) {
			until = free
		}
		return now.Sub(w.polled) > pollWindow
	})
	if w == nil {
		aw.failed = searchFailure{own, aw.changes, until}
		return false
	}
	aw.remove(w)
	return true
}

// isFull reports whether an earlier search shows that a caller with count auto-watches cannot replace any auto-watch. The caller
// holds the lock.
func (aw *autoWatcher) isFull(count int, now time.Time) bool {
	return len(aw.watches) >= aw.size && aw.failed.changes == aw.changes && count >= aw.failed.count && !now.After(aw.failed.until)
}

// count returns the number of a caller's auto-watches. The caller holds the lock.
func (aw *autoWatcher) count(caller string) int {
	if c := aw.callers[caller]; c != nil {
		return c.count
	}
	return 0
}

// victim returns the auto-watch to remove. Of the matching auto-watches, it chooses those of the caller with the most auto-watches,
// and of these the one that was polled least recently. It returns nil if no auto-watch matches. The caller holds the lock.
func (aw *autoWatcher) victim(match func(*autoWatch) bool) (least *autoWatch) {
	for _, w := range aw.watches {
		if least != nil {
			if a, b := w.caller.count, least.caller.count; a < b || a == b && !w.polled.Before(least.polled) {
				continue
			}
		}
		if match(w) {
			least = w
		}
	}
	return least
}

// add adds an auto-watch. The caller holds the lock. After the caller has released the lock, it must pass the auto-watch to open.
func (aw *autoWatcher) add(key messages.Topic, caller string, now time.Time) *autoWatch {
	c := aw.callers[caller]
	if c == nil {
		c = &autoCaller{name: caller}
		aw.callers[caller] = c
	}
	c.count++
	aw.changes++
	w := &autoWatch{key: key, caller: c, polled: now, opening: true}
	aw.watches[key] = w
	if aw.byToken[key.Channel] == nil {
		aw.byToken[key.Channel] = make(map[string]*autoWatch)
	}
	aw.byToken[key.Channel][key.ID] = w
	return w
}

// remove removes an auto-watch and closes its watch. The caller holds the lock.
func (aw *autoWatcher) remove(w *autoWatch) {
	delete(aw.watches, w.key)
	delete(aw.byToken[w.key.Channel], w.key.ID)
	aw.changes++
	if w.caller.count--; w.caller.count == 0 {
		delete(aw.callers, w.caller.name)
	}
	if w.watch != nil {
		w.watch.Close()
	}
}

// open opens auto-watches. If there is no room for an auto-watch, expire opens it later.
func (aw *autoWatcher) open(opening []*autoWatch) {
	room := true
	for _, w := range opening {
		var watch *Watch
		var err error
		if room {
			watch, err = aw.feed.watchForQueries(w.key)
			room = market.CodeOf(err) != market.CodeRateLimited
		}
		aw.mu.Lock()
		w.opening = false
		switch {
		case aw.watches[w.key] != w: // removed in the meantime
			if watch != nil {
				watch.Close()
			}
		case err != nil && room:
			aw.remove(w)
		default:
			w.watch = watch
			if watch == nil && aw.expiry != nil {
				aw.expiry.Reset(retryEvery)
			}
		}
		aw.mu.Unlock()
	}
}

// expire removes auto-watches without recent polls and auto-watches whose watch has ended, for example because the venue has
// refused the topic. It tries again to open auto-watches for which there was no room.
func (aw *autoWatcher) expire() {
	now := aw.feed.cfg.Clock.Now()
	next := autoWatchFor
	var opening []*autoWatch
	aw.mu.Lock()
	if aw.expiry != nil {
		aw.expiry.Stop() // open may have reset the timer
		aw.expiry = nil
	}
	for _, w := range aw.watches {
		left := autoWatchFor - now.Sub(w.polled)
		if left <= 0 || w.watch != nil && w.watch.Ended() {
			aw.remove(w)
			continue
		}
		if w.watch == nil {
			next = retryEvery
			if !w.opening {
				w.opening = true
				opening = append(opening, w)
			}
		}
		next = min(next, left)
	}
	if len(aw.watches) > 0 && !aw.closed {
		aw.expiry = time.AfterFunc(max(next, retryEvery), aw.expire)
	}
	aw.mu.Unlock()
	aw.open(opening)
}

// giveWay makes room for a subscriber: it removes an auto-watch that is the only watch of its topic. It returns false if there is
// no such auto-watch. The caller holds the feed's lock.
func (aw *autoWatcher) giveWay() bool {
	aw.mu.Lock()
	defer aw.mu.Unlock()
	w := aw.victim(func(w *autoWatch) bool { return w.watch != nil && w.watch.Only() })
	if w == nil {
		return false
	}
	aw.remove(w)
	aw.feed.closeIdle(w.watch.topic)
	return true
}

func (aw *autoWatcher) close() {
	aw.mu.Lock()
	defer aw.mu.Unlock()
	aw.closed = true
	if aw.expiry != nil {
		aw.expiry.Stop()
		aw.expiry = nil
	}
	for _, w := range aw.watches {
		aw.remove(w)
	}
}
