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
	// A token that is polled pollsToWatch times within pollWindow gets an auto-watch. An auto-watch is closed when the time
	// autoWatchFor has passed since its last poll.
	pollsToWatch = 3
	pollWindow   = 10 * time.Second
	autoWatchFor = 30 * time.Second
	// retryEvery is the time between two attempts to open an auto-watch while the stream cannot take another topic.
	retryEvery = time.Second
)

// autoWatcher watches a topic if queries often read its values, so that these reads need no calls to the venue. Such a read is
// called a poll. At the maximum number of auto-watches, a caller with few of them may replace an auto-watch of a caller with many.
type autoWatcher struct {
	feed *Feed
	size int // the maximum number of auto-watches

	// mu protects all fields below. The lock order is Feed.mu, autoWatcher.mu, topic.mu.
	mu sync.Mutex
	// polls contains the recent polls of topics without an auto-watch.
	polls   *lru.Cache[messages.Topic, *pollTimes]
	watches map[messages.Topic]*autoWatch
	// byToken contains the same auto-watches as watches, by channel and token id.
	byToken map[messages.Channel]map[string]*autoWatch
	callers map[string]*autoCaller
	// changes counts the additions and removals of auto-watches.
	changes     uint64
	lastFailure searchFailure
	// expiry is the timer that calls expire. It is nil if there are no auto-watches.
	expiry *time.Timer
	closed bool
}

type autoWatch struct {
	key messages.Topic
	// caller is the caller whose poll opened the auto-watch. lastPoll is the time of the last poll. Another caller may have made this
	// poll.
	caller   *autoCaller
	lastPoll time.Time
	// watch is nil until the topic is open. opening reports whether a goroutine is opening the topic.
	watch   *Watch
	opening bool
}

// autoCaller is a caller with at least one auto-watch.
type autoCaller struct {
	name  string
	count int // the number of auto-watches
}

// searchFailure describes a search of makeRoom that found no auto-watch to remove. count is the number of auto-watches that the
// caller had. A search for a caller with as many or more auto-watches would also fail. Such searches are skipped until the time
// validUntil, or until an auto-watch is added or removed. changes is autoWatcher.changes at the time of the search.
type searchFailure struct {
	count      int
	changes    uint64
	validUntil time.Time
}

// pollTimes contains the times of a topic's recent polls. lastID identifies the last poll; it is the parameter poll of
// Feed.RecordPoll.
type pollTimes struct {
	times  []time.Time
	lastID uint64
}

func newAutoWatcher(f *Feed) *autoWatcher {
	size := max(f.cfg.Topics/2, 1)
	recent, err := lru.New[messages.Topic, *pollTimes](10 * size)
	if err != nil {
		panic("feed: " + err.Error()) // lru.New fails only for a size below 1
	}
	return &autoWatcher{
		feed: f, size: size, polls: recent, watches: make(map[messages.Topic]*autoWatch),
		byToken: make(map[messages.Channel]map[string]*autoWatch), callers: make(map[string]*autoCaller),
	}
}

// recordPolls counts a poll of each token by a caller. A token that was polled at least minPolls times within pollWindow gets an
// auto-watch if makeRoom allows it.
func (aw *autoWatcher) recordPolls(poll uint64, caller string, c messages.Channel, tokenIDs []string, minPolls int) {
	if aw.feed.upstream == nil {
		return // there is no stream
	}
	now := aw.feed.cfg.Clock.Now()
	var opening []*autoWatch
	aw.mu.Lock()
	// If the caller cannot open an auto-watch, recordPolls does not count polls of tokens without an auto-watch.
	full := aw.searchWouldFail(aw.count(caller), now)
	tokens := aw.byToken[c]
	for _, id := range tokenIDs {
		if w := tokens[id]; w != nil {
			w.lastPoll = now
			continue
		}
		if full {
			continue
		}
		key := messages.Topic{Channel: c, ID: id}
		polls, known := aw.polls.Get(key)
		if !known {
			polls = new(pollTimes)
		} else if poll != 0 && polls.lastID == poll {
			continue
		}
		polls.times, polls.lastID = append(slices.DeleteFunc(polls.times, func(at time.Time) bool { return now.Sub(at) > pollWindow }), now), poll
		if !known || len(polls.times) >= minPolls {
			key.ID = strings.Clone(id) // id may be a part of a whole request, which the key must not keep in memory
		}
		if len(polls.times) >= minPolls && !aw.closed {
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

// makeRoom reports whether a caller may add an auto-watch. If there are already aw.size auto-watches, makeRoom removes one of them:
//   - It prefers an auto-watch of a caller that has at least two auto-watches more than this caller.
//   - Otherwise, it removes an auto-watch that was not polled within pollWindow. The caller of that auto-watch must have at least
//     as many auto-watches as this caller.
//
// If there is no auto-watch of either kind, makeRoom returns false. aw.mu must be locked.
func (aw *autoWatcher) makeRoom(caller string, now time.Time) bool {
	if len(aw.watches) < aw.size {
		return true
	}
	own := aw.count(caller)
	if aw.searchWouldFail(own, now) {
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
		if free := w.lastPoll.Add(pollWindow); free.Before(until) {
			until = free
		}
		return now.Sub(w.lastPoll) > pollWindow
	})
	if w == nil {
		aw.lastFailure = searchFailure{own, aw.changes, until}
		return false
	}
	aw.remove(w)
	return true
}

// searchWouldFail reports whether there are aw.size auto-watches and a new search for a caller would fail like the last failed
// search. The parameter own is the number of the caller's auto-watches. aw.mu must be locked.
func (aw *autoWatcher) searchWouldFail(own int, now time.Time) bool {
	return len(aw.watches) >= aw.size && aw.lastFailure.changes == aw.changes && own >= aw.lastFailure.count && !now.After(aw.lastFailure.validUntil)
}

// count returns the number of a caller's auto-watches. aw.mu must be locked.
func (aw *autoWatcher) count(caller string) int {
	if c := aw.callers[caller]; c != nil {
		return c.count
	}
	return 0
}

// victim chooses, among the auto-watches for which match returns true, one whose caller has the most auto-watches. Among equals, it
// chooses the auto-watch that was polled least recently. It returns nil if no auto-watch matches. aw.mu must be locked.
func (aw *autoWatcher) victim(match func(*autoWatch) bool) (chosen *autoWatch) {
	for _, w := range aw.watches {
		if chosen != nil {
			if a, b := w.caller.count, chosen.caller.count; a < b || a == b && !w.lastPoll.Before(chosen.lastPoll) {
				continue
			}
		}
		if match(w) {
			chosen = w
		}
	}
	return chosen
}

// add adds an auto-watch. aw.mu must be locked. The calling function must pass the auto-watch to open after it has unlocked aw.mu.
func (aw *autoWatcher) add(key messages.Topic, caller string, now time.Time) *autoWatch {
	c := aw.callers[caller]
	if c == nil {
		c = &autoCaller{name: caller}
		aw.callers[caller] = c
	}
	c.count++
	aw.changes++
	w := &autoWatch{key: key, caller: c, lastPoll: now, opening: true}
	aw.watches[key] = w
	if aw.byToken[key.Channel] == nil {
		aw.byToken[key.Channel] = make(map[string]*autoWatch)
	}
	aw.byToken[key.Channel][key.ID] = w
	return w
}

// remove removes an auto-watch and closes its watch. aw.mu must be locked.
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

// open opens the topics of auto-watches. If the stream cannot take another topic, expire opens the remaining topics later. After
// another error, open removes the auto-watch.
func (aw *autoWatcher) open(opening []*autoWatch) {
	free := true
	for _, w := range opening {
		var watch *Watch
		var err error
		if free {
			watch, err = aw.feed.hold(w.key)
			free = market.CodeOf(err) != market.CodeRateLimited
		}
		aw.mu.Lock()
		w.opening = false
		switch {
		case aw.watches[w.key] != w: // removed in the meantime
			if watch != nil {
				watch.Close()
			}
		case err != nil && free:
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

// expire removes auto-watches that were not polled for autoWatchFor. It also removes auto-watches whose watch has ended, for
// example because the venue has refused the topic. It then tries again to open the auto-watches that have no open topic yet.
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
		left := autoWatchFor - now.Sub(w.lastPoll)
		if left <= 0 || w.watch != nil && w.watch.ended() {
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

// giveWay removes an auto-watch that is the only watch of its topic, so that a subscriber can watch another topic instead. It
// returns false if there is no such auto-watch. Feed.mu must be locked.
func (aw *autoWatcher) giveWay() bool {
	aw.mu.Lock()
	defer aw.mu.Unlock()
	w := aw.victim(func(w *autoWatch) bool { return w.watch != nil && w.watch.isOnlyWatch() })
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
