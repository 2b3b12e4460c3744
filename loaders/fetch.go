package loaders

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

const (
	// After the first value has arrived, Fetch waits for other values at least minPatience, and at least patienceOf times the
	// duration of the last pass. So a slow call does not delay the fields below a fast one, and passes take at most a fifth of a
	// processor.
	minPatience = time.Millisecond
	patienceOf  = 4
	// maxArrivals is the number of batches that can deliver results while the Set's goroutine runs a pass.
	maxArrivals = 16
)

// response is the state that the loaders of a Set share. The Set's goroutine owns it.
type response struct {
	// ctx is for lookups, calls for the calls of Fetch. cancel ends calls.
	ctx          context.Context
	calls        context.Context
	cancel       context.CancelFunc
	dependencies *reqctx.Dependencies
	log          *reqctx.Log
	// made counts the upstream calls of all keys sent so far. maxCalls limits it unless maxCalls is 0.
	made, maxCalls int
	// refused is the error of Fetch once maxCalls was exceeded.
	refused error

	// pending reports whether the current pass has read a missing value.
	pending bool
	// failed is the error of all further missing keys, or nil while keys can be fetched.
	failed error
	// began is the start of the current pass.
	began time.Time
	// inFlight counts the keys that were sent and have no result yet.
	inFlight int
	// arrivals delivers the results of batches to the Set's goroutine.
	arrivals chan func()
}

// Pending reports whether the current pass has read a value that is missing. If so, discard the output of the pass.
func (s *Set) Pending() bool { return s.pending }

// Fetch ends a pending pass. It sends the missing keys, one batch for each kind, and waits for values. It returns nil when
// another pass can use them: all have arrived, or some have and the others are slow. For kinds that take one call for each key
// it waits longer, up to half of ctx's remaining time, so that the reads below these keys share a batch. It returns an error
// when ctx ends or the keys would exceed the limit of upstream calls. Call Fail with that error.
func (s *Set) Fetch(ctx context.Context) error {
	patience := max(minPatience, patienceOf*time.Since(s.began))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.countCalls(); err != nil {
		return err
	}
	if s.cancel == nil {
		s.calls, s.cancel = context.WithCancel(ctx)
		s.arrivals = make(chan func(), maxArrivals)
	}
	for _, l := range s.loaders() {
		l.send()
	}
	err := s.await(ctx, patience)
	s.pending, s.began = false, time.Now()
	return err
}

// countCalls adds the calls of the missing keys. It returns an error if they exceed maxCalls.
func (s *Set) countCalls() error {
	var most reqctx.Kind
	sum, largest := s.made, 0
	for _, l := range s.loaders() {
		kind, n := l.cost()
		if sum += n; n > largest {
			most, largest = kind, n
		}
	}
	if s.maxCalls > 0 && sum > s.maxCalls {
		const text = "the operation takes %d calls to the venue or more; at most %d are accepted. %d of them are for the kind %s: ask for fewer items at once"
		s.refused = market.Errorf(market.CodeBadUserInput, text, sum, s.maxCalls, largest, most).Because(ErrTooManyCalls)
		return s.refused
	}
	s.made = sum
	return nil
}

// Calls returns the number of upstream calls that the keys fetched so far need. The cache may have shared some of these calls
// with other responses.
func (s *Set) Calls() int { return s.made }

// Refused returns the error of Fetch if the response would have taken too many upstream calls.
func (s *Set) Refused() error { return s.refused }

// await stores arriving values until Fetch may return. It never returns right after the first value of a kind with one call for each key.
func (s *Set) await(ctx context.Context, patience time.Duration) error {
	var enough, half <-chan time.Time
	late, last := false, false
	store := func(deliver func()) {
		deliver()
		if enough == nil {
			enough = time.After(patience)
		}
	}
	for {
		for stored := true; stored; {
			select {
			case deliver := <-s.arrivals:
				store(deliver)
			default:
				stored = false
			}
		}
		if s.inFlight == 0 || late && (last || !s.partial()) {
			return nil
		}
		select {
		case deliver := <-s.arrivals:
			store(deliver)
		case <-enough:
			late = true
			if deadline, ok := ctx.Deadline(); ok {
				half = time.After(time.Until(deadline) / 2)
			}
		case <-half:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// partial reports whether a kind with one call for each key has received only some of its values.
func (s *Set) partial() bool {
	for _, l := range s.loaders() {
		if l.partial() {
			return true
		}
	}
	return false
}

// Fail stops fetching after an error of Fetch. It cancels the calls in flight and keeps the results that have arrived. Further
// reads of missing values return err, and no pass is pending.
func (s *Set) Fail(err error) {
	if s.cancel != nil {
		s.cancel()
	}
	s.awaitAll()
	s.failed, s.pending = err, false
	for _, l := range s.loaders() {
		l.fail(err)
	}
}

// awaitAll waits for all keys in flight.
func (s *Set) awaitAll() {
	for s.inFlight > 0 {
		(<-s.arrivals)()
	}
}

// Complete calls pass until no read is pending, with a Fetch after each pending pass. If Fetch fails, the last pass reads
// errors for the values that are still missing.
func (s *Set) Complete(ctx context.Context, pass func()) {
	for pass(); s.pending; pass() {
		if err := s.Fetch(ctx); err != nil {
			s.Fail(err)
		}
	}
}

// Read calls read with a new Set until no read is pending, like Complete.
func Read(ctx context.Context, of Sources, read func(*Set)) {
	ctx, set, _ := With(ctx, of)
	defer set.Done()
	set.Complete(ctx, func() { read(set) })
}
