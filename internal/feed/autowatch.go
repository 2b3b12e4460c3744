package feed

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

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
// called a poll.
type autoWatcher struct {
	feed *Feed
	size int // the maximum number of auto-watches

	// mu protects all fields below. The lock order is autoWatcher.mu, Feed.mu, topic.mu.
	mu sync.Mutex
	// polls contains the recent polls of topics without an auto-watch.
	polls *simplelru.LRU[messages.Topic, *pollTimes]
	// watches contains the auto-watches in the order of their last polls.
	watches *simplelru.LRU[messages.Topic, *autoWatch]
	// fullUntil is the time of the next attempt after the stream could not take another topic.
	fullUntil time.Time
	// expiry is the timer that calls expire. It is nil if there are no auto-watches.
	expiry *time.Timer
}

type autoWatch struct {
	*Watch
	lastPoll time.Time
}

// pollTimes contains the times of a topic's last polls. lastID identifies the last poll; it is the parameter pollID of
// Feed.RecordPoll.
type pollTimes struct {
	times  [pollsToWatch]time.Time
	lastID uint64
}

func newAutoWatcher(f *Feed) *autoWatcher {
	aw := &autoWatcher{feed: f, size: max(f.cfg.Topics/2, 1)}
	aw.polls, _ = simplelru.NewLRU[messages.Topic, *pollTimes](10*aw.size, nil) // fails for sizes below 1
	aw.watches, _ = simplelru.NewLRU(aw.size, func(_ messages.Topic, w *autoWatch) { w.Close() })
	return aw
}

// recordPolls counts a poll of each token. A token that was polled at least minPolls times within pollWindow gets an auto-watch if
// there is room.
func (aw *autoWatcher) recordPolls(pollID uint64, c messages.Channel, tokenIDs []string, minPolls int) {
	if aw.feed.upstream == nil {
		return // there is no stream
	}
	now := aw.feed.cfg.Clock.Now()
	aw.mu.Lock()
	defer aw.mu.Unlock()
	for _, id := range tokenIDs {
		key := messages.Topic{Channel: c, ID: id}
		if w, ok := aw.watches.Get(key); ok {
			w.lastPoll = now
		} else if aw.hasRoom(now) && aw.count(key, pollID, now) >= minPolls {
			aw.open(key, now)
		}
	}
}

// hasRoom reports whether another auto-watch may be opened. At the maximum number, an auto-watch can be replaced that was not
// polled within pollWindow, so that callers that poll too many tokens do not replace auto-watches again and again. aw.mu must be
// locked.
func (aw *autoWatcher) hasRoom(now time.Time) bool {
	if now.Before(aw.fullUntil) {
		return false
	}
	_, oldest, _ := aw.watches.GetOldest()
	return aw.watches.Len() < aw.size || now.Sub(oldest.lastPoll) > pollWindow
}

// count counts a poll and returns the number of polls within pollWindow, at most pollsToWatch. It returns 0 if the last poll had
// the same pollID. aw.mu must be locked.
func (aw *autoWatcher) count(key messages.Topic, pollID uint64, now time.Time) (n int) {
	p, known := aw.polls.Get(key)
	if !known {
		p = new(pollTimes)
		key.ID = strings.Clone(key.ID) // it may be a part of a whole request, which the key must not keep in memory
		aw.polls.Add(key, p)
	} else if pollID != 0 && p.lastID == pollID {
		return 0
	}
	copy(p.times[:], p.times[1:])
	p.times[pollsToWatch-1], p.lastID = now, pollID
	for _, at := range p.times {
		if now.Sub(at) <= pollWindow {
			n++
		}
	}
	return n
}

// open opens an auto-watch. At the maximum number, it replaces the one with the oldest poll. aw.mu must be locked.
func (aw *autoWatcher) open(key messages.Topic, now time.Time) {
	if aw.watches.Len() >= aw.size {
		aw.watches.RemoveOldest()
	}
	key.ID = strings.Clone(key.ID)
	w, err := aw.feed.hold(key)
	if market.CodeOf(err) == market.CodeRateLimited {
		aw.fullUntil = now.Add(retryEvery)
		return
	}
	aw.polls.Remove(key)
	if err != nil {
		return
	}
	aw.watches.Add(key, &autoWatch{w, now})
	if aw.expiry == nil {
		aw.expiry = time.AfterFunc(autoWatchFor, aw.expire)
	}
}

// expire closes auto-watches that were not polled for autoWatchFor. It also removes auto-watches whose topic has ended, for example
// because the venue has refused it, so that later polls can open them again.
func (aw *autoWatcher) expire() {
	now := aw.feed.cfg.Clock.Now()
	aw.mu.Lock()
	defer aw.mu.Unlock()
	for _, key := range aw.watches.Keys() {
		if w, _ := aw.watches.Peek(key); now.Sub(w.lastPoll) >= autoWatchFor || w.ended() {
			aw.watches.Remove(key)
		}
	}
	aw.expiry = nil
	if _, oldest, ok := aw.watches.GetOldest(); ok {
		aw.expiry = time.AfterFunc(max(autoWatchFor-now.Sub(oldest.lastPoll), retryEvery), aw.expire)
	}
}

// close closes all auto-watches. The feed must be closed before, so that no further ones open.
func (aw *autoWatcher) close() {
	aw.mu.Lock()
	defer aw.mu.Unlock()
	if aw.expiry != nil {
		aw.expiry.Stop()
		aw.expiry = nil
	}
	aw.watches.Purge()
}
