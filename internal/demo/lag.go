package demo

import (
	"net/http"
	"strconv"
	"sync"
)

// maxKept is the maximum total size of the cached bodies in bytes.
const maxKept = 64 << 20

// lag caches responses, like an HTTP cache in front of a venue.
type lag struct {
	mu   sync.Mutex
	kept map[string]keptAnswer // by path, query and, on user endpoints, the account's key
	size int                   // bytes of all bodies
}

type keptAnswer struct {
	at   millis
	body []byte
}

// answerWithLag writes an answer to out. The age of the answer is at most Config.Lag. The header Age contains the age. An error
// answer has no header Age.
func (v *Venue) answerWithLag(e *endpoint, c *call, out *answer) {
	key, now, maxAge := c.r.URL.Path+"?"+c.r.URL.RawQuery, v.now(), millis(v.config.Lag.Milliseconds())
	scope := "public"
	if e.user {
		if err := c.authorize(); err != nil {
			out.fail(err)
			return
		}
		scope, key = "private", key+"\x00"+c.account.key
	}
	at, ok := v.lag.load(key, now, maxAge, out)
	if !ok {
		if v.answer(e, c, out); out.status != http.StatusOK {
			return
		}
		at = now
		v.lag.store(key, at, out.body)
	}
	// max-age is rounded down and Age up, so that no client caches the answer for too long.
	out.header.Set("Cache-Control", scope+", max-age="+strconv.FormatInt(int64(maxAge/second), 10))
	out.header.Set("Age", strconv.FormatInt(int64((now-at+second-1)/second), 10))
}

// load writes a cached body into out and returns the time of the answer. ok is false if no cached answer is younger than maxAge.
func (l *lag) load(key string, now, maxAge millis, out *answer) (at millis, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.kept[key]
	if !ok || now-k.at >= maxAge {
		return 0, false
	}
	out.body = append(out.body[:0], k.body...)
	return k.at, true
}

// store caches an answer. It does nothing if a newer answer is cached or if the body is larger than maxKept. If the total size
// would exceed maxKept, store first removes all answers.
func (l *lag) store(key string, at millis, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.kept[key]
	if old.at > at || len(body) > maxKept {
		return
	}
	if l.kept == nil || l.size+len(body) > maxKept {
		l.kept, l.size, old = make(map[string]keptAnswer), 0, keptAnswer{}
	}
	l.kept[key] = keptAnswer{at, append([]byte(nil), body...)}
	l.size += len(body) - len(old.body)
}

func (l *lag) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.size = nil, 0
}
