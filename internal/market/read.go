package market

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Meta says where and when a value was read. It belongs to the value, not to the request that shows it.
type Meta struct {
	// AsOf is the venue's time of the value; zero when the venue gave none.
	AsOf time.Time
	// ReceivedAt is when this service got the value.
	ReceivedAt time.Time
	Source     Source
	// Stale tells that the value was past its fresh time when it was read.
	Stale bool
	// Handle stands for the cache entry that the value was read from; nil for values that were never cached.
	Handle *Handle
}

// Read is a value with its Meta. An absent value is the zero T (nil where T is a pointer) and has a Meta too.
type Read[T any] struct {
	Value T
	Meta
}

// Result is one element of an answer for several keys: a value or the error that it cost.
type Result[T any] struct {
	Value T
	Err   error
}

// LeftOut holds an Error for each row that the venue sent in a list and that could not be read, so that the list is without
// it; the message says which row of the venue's answer it was. It is empty where the list is all that the venue sent, and
// belongs to the value, not to the request that shows it.
type LeftOut []error

// Combine returns the Meta of a value computed from values with the given ones: the oldest times, stale when one is.
func Combine(metas ...Meta) Meta {
	out := Meta{Source: SourceComputed}
	for _, m := range metas {
		if m.ReceivedAt.IsZero() {
			continue
		}
		out.Stale = out.Stale || m.Stale
		if out.ReceivedAt.IsZero() || m.ReceivedAt.Before(out.ReceivedAt) {
			out.ReceivedAt = m.ReceivedAt
		}
		if !m.AsOf.IsZero() && (out.AsOf.IsZero() || m.AsOf.Before(out.AsOf)) {
			out.AsOf = m.AsOf
		}
	}
	return out
}

// Handle lets whoever used a cache entry find out later, with one atomic load and no look-up, whether the entry still
// stands. An entry has one handle from its creation to its end, and an absent value has an entry too.
type Handle struct {
	version    atomic.Uint64
	freshUntil time.Time
	session    *Session
	age        Age
}

// NewHandle returns the handle of an entry that is fresh until the given instant.
func NewHandle(freshUntil time.Time) *Handle { return &Handle{freshUntil: freshUntil} }

// NewHandleOfAge is NewHandle for the entry of an answer whose age is known.
func NewHandleOfAge(freshUntil time.Time, age Age) *Handle {
	return &Handle{freshUntil: freshUntil, age: age}
}

// NewStreamHandle returns the handle of an entry that is fresh as long as the session that it was streamed in lasts.
func NewStreamHandle(s *Session) *Handle { return &Handle{session: s} }

// Version is 0 while the entry stands and grows when it is replaced, evicted or no longer live. It is safe for concurrent
// use.
func (h *Handle) Version() uint64 {
	v := h.version.Load()
	if h.session != nil {
		if _, ended := h.session.Ended(); ended {
			v++
		}
	}
	return v
}

// FreshUntil returns the instant until which the entry is fresh; ok is false where that is no matter of time, because the
// entry is streamed and Version tells.
func (h *Handle) FreshUntil() (at time.Time, ok bool) { return h.freshUntil, h.session == nil }

// Age returns how old the entry's answer may have been when it came. It is zero for a nil Handle and for streamed entries.
func (h *Handle) Age() Age {
	if h == nil {
		return Age{}
	}
	return h.age
}

// Bump tells the holders of the handle that the entry was replaced, evicted or is no longer live. It is safe for concurrent use.
func (h *Handle) Bump() { h.version.Add(1) }

// Recorder collects what one response rests on: the handles of everything that it was built from, and what else could make
// the same question be answered otherwise later. It is safe for concurrent use. A nil Recorder ignores everything.
type Recorder struct {
	mu sync.Mutex
	// handles may hold one several times. They begin in first, which is enough for a small response.
	handles []*Handle
	first   [8]*Handle
	until   time.Time
	// personal tells that the response may depend on who asked, spoiled that nobody can tell how long it holds.
	personal, spoiled bool
	// account reports that data of an account are read, answered that the venue has sent some of them.
	account, answered bool
}

// Record adds the handle of what was read, once or more. A nil handle is that of a read that failed or has no
// entry: it tells nobody when it would give something else, so what the response rests on is not known any more.
func (r *Recorder) Record(h *Handle) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(1)
	r.record(h)
}

// RecordAll records what was read together.
func RecordAll[T any](r *Recorder, results []Result[Read[T]]) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grow(len(results))
	for i := range results {
		r.record(results[i].Value.Handle)
	}
}

// grow makes room for n more handles. The lock is held.
func (r *Recorder) grow(n int) {
	if r.handles == nil {
		r.handles = r.first[:0]
	}
	r.handles = slices.Grow(r.handles, n)
}

// record is Record, for which there is room. The lock is held.
func (r *Recorder) record(h *Handle) {
	if h == nil {
		r.spoiled = true
		return
	}
	r.handles = append(r.handles, h)
}

// Until tells that the clock alone changes the response from an instant on. The earliest instant counts.
func (r *Recorder) Until(at time.Time) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.until.IsZero() || at.Before(r.until) {
		r.until = at
	}
}

// ReadAccount notes that data of an account are read with the caller's credentials.
func (r *Recorder) ReadAccount() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account = true
}

// ReadsAccount reports whether ReadAccount was called.
func (r *Recorder) ReadsAccount() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.account
}

// AnswerAccount notes that the venue has sent data of an account, so it accepts the caller's credentials.
func (r *Recorder) AnswerAccount() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = true
}

// AnsweredAccount reports whether AnswerAccount was called.
func (r *Recorder) AnsweredAccount() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered
}

// identify notes that it was looked who asks.
func (r *Recorder) identify() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.personal = true
}

// Handles returns the distinct handles recorded so far, in no order. A nil Recorder has none.
func (r *Recorder) Handles() []*Handle {
	b, _ := r.Basis()
	return b.Handles
}

// Basis is what a response rests on: while all handles stand and are fresh and it is not yet Until, the same question by the
// same caller is answered the same.
type Basis struct {
	// Handles are distinct and in no order.
	Handles []*Handle
	// Until is when the clock alone changes the response; zero where it does not.
	Until time.Time
	// Personal tells that the response may depend on the caller's credentials, or on there being none.
	Personal bool
}

// Basis returns what was recorded so far. ok is false where something was read of which nobody can tell how long it holds,
// and for a nil Recorder.
func (r *Recorder) Basis() (b Basis, ok bool) {
	if r == nil {
		return b, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b = Basis{Handles: make([]*Handle, 0, len(r.handles)), Until: r.until, Personal: r.personal}
	known := make(map[*Handle]bool, len(r.handles))
	for _, h := range r.handles {
		if !known[h] {
			known[h] = true
			b.Handles = append(b.Handles, h)
		}
	}
	return b, !r.spoiled
}

// Recording is the context of a response, together with its recorder. Its reads are recorded, and are one demand of a client,
// however many values of a token they are. Begin makes it one.
type Recording struct {
	requestContext
	Recorder Recorder
}

// Begin derives the context from ctx.
func (r *Recording) Begin(ctx context.Context) {
	r.requestContext = derive(ctx)
	r.recorder, r.demand = &r.Recorder, demands.Add(1)
}

// WithRecorder returns a context in which reads are recorded, and the recorder.
func WithRecorder(ctx context.Context) (context.Context, *Recorder) {
	r := &Recording{}
	r.Begin(ctx)
	return r, &r.Recorder
}

// Session is one unbroken time of the venue's stream. Values that were streamed in it point to it, so that the end of a
// connection makes all of them stale by one write. It is safe for concurrent use.
type Session struct{ ended atomic.Int64 }

// End makes everything that was streamed in the session stale, for good. Only the first end counts.
func (s *Session) End(at time.Time) { s.ended.CompareAndSwap(0, at.UnixNano()) }

// Ended returns when the session ended; ok is false while it lasts.
func (s *Session) Ended() (at time.Time, ok bool) {
	if ns := s.ended.Load(); ns != 0 {
		return time.Unix(0, ns), true
	}
	return time.Time{}, false
}
