package loaders

import (
	"context"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
	"oddsgraph/internal/upstream"
)

const (
	// After the first value has arrived, Fetch waits for the other values: for minPatience, or for patienceFactor times the duration
	// of the last pass if this product is longer. After the wait, Fetch may return without the missing values, so that the next pass
	// can read the fields below the values that have arrived. So even if the values arrive one by one, the passes use at most a fifth
	// of the time of one processor.
	minPatience    = time.Millisecond
	patienceFactor = 4
	// maxArrivals is the number of batches whose results can wait while the Set's goroutine runs a pass.
	maxArrivals = 16
)

// response contains the fields that the loaders of a Set share. Only the Set's goroutine uses them, but other goroutines send to
// arrivals.
type response struct {
	// ctx is the context for Source.Lookup and Source.Refresh.
	ctx context.Context
	// fetchCtx is the context for Source.Fetch. cancel cancels this context.
	fetchCtx     context.Context
	cancel       context.CancelCauseFunc
	dependencies *request.Dependencies
	log          *request.Log
	// callCount is the number of upstream calls for all keys that were fetched so far. maxCalls is the greatest allowed callCount, or
	// 0 if there is no limit.
	callCount, maxCalls int
	// refused is the error that Fetch returned because the keys needed more than maxCalls calls.
	refused error

	// pending reports whether a read of the current pass has returned ErrPending.
	pending bool
	// failed is nil until Fail is called. From then on, it is the error of all reads of missing keys.
	failed error
	// began is the start of the current pass. patience is how long Fetch waits after it has ended, and 0 before.
	began    time.Time
	patience time.Duration
	inFlight int
	// arrived has a bit for each venue of which a batch has returned since the last pass.
	arrived uint32
	// arrivals delivers the results of batches to the Set's goroutine.
	arrivals chan func()
}

// Pending reports whether a read of the current pass has returned ErrPending. If so, discard the output of the pass.
func (s *Set) Pending() bool { return s.pending }

// Fetch ends a pending pass. It starts the calls for the missing keys and waits for their results. It returns nil when another pass
// is useful: all values have arrived, or some have arrived and the others are slow. Some kinds need one call for each key. If some
// but not all values of such a kind and one venue have arrived, Fetch waits longer, so that the reads below these values share a batch. This
// longer wait is at most half of the time that remains until the deadline of ctx. Without a deadline, it has no limit. Fetch
// returns an error when ctx ends, or if the response needs too many upstream calls. Pass this error to Fail.
func (s *Set) Fetch(ctx context.Context) error {
	s.endPass()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.countCalls(); err != nil {
		return err
	}
	if s.cancel == nil {
		s.fetchCtx, s.cancel = context.WithCancelCause(ctx)
		s.arrivals = make(chan func(), maxArrivals)
	}
	for _, l := range s.loaders {
		l.send()
	}
	s.arrived = 0
	err := s.await(ctx, s.patience)
	s.pending, s.began, s.patience = false, time.Now(), 0
	return err
}

// countCalls adds the calls of the missing keys to callCount. It returns an error if the sum exceeds maxCalls.
func (s *Set) countCalls() error {
	var most upstream.Kind
	sum, largest := s.callCount, 0
	for _, l := range s.loaders {
		kind, n := l.cost()
		if sum += n; n > largest {
			most, largest = kind, n
		}
	}
	if s.maxCalls > 0 && sum > s.maxCalls {
		const text = "the operation needs at least %d calls to the venue; at most %d are accepted. %d of them are for the kind %s: request fewer items at once"
		s.refused = market.Errorf(market.CodeBadUserInput, text, sum, s.maxCalls, largest, most).Because(ErrTooManyCalls)
		return s.refused
	}
	s.callCount = sum
	return nil
}

// Calls returns the number of upstream calls for the keys that were fetched so far. The cache may have shared some of these calls
// with other responses.
func (s *Set) Calls() int { return s.callCount }

// Refused returns the error that Fetch returned because the response needed too many upstream calls, or nil.
func (s *Set) Refused() error { return s.refused }

// await stores arriving values until Fetch may return; see Fetch.
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

// partial reports whether each venue of which batches have returned since the last pass is slow with other batches of the same kind.
// So a slow venue does not delay the reads below the values of another venue.
func (s *Set) partial() bool {
	var slow uint32
	for _, l := range s.loaders {
		_, partial := l.venues()
		slow |= partial
	}
	return s.arrived&^slow == 0
}

// Waits ends a pending pass and returns the venues of which keys are missing or in flight. The bit i is that of the venue at the index i
// of Route's sources. The time until Fetch is no part of the pass.
func (s *Set) Waits() (venues uint32) {
	s.endPass()
	for _, l := range s.loaders {
		waits, _ := l.venues()
		venues |= waits
	}
	return venues
}

func (s *Set) endPass() {
	if s.patience == 0 {
		s.patience = max(minPatience, patienceFactor*time.Since(s.began))
	}
}

// Fail stops fetching, for example after Fetch has returned an error. It cancels the calls in flight and waits for them. Values that have
// arrived stay readable. From then on, reads of missing keys return err instead of ErrPending.
func (s *Set) Fail(err error) {
	switch {
	case s.cancel == nil:
	case s.refused != nil: // an error of the fields that need too many calls, not of those in flight
		s.cancel(nil)
	default:
		s.cancel(err)
	}
	s.awaitAll()
	s.failed, s.pending = err, false
	for _, l := range s.loaders {
		l.fail(err)
	}
}

// awaitAll waits for the results of all keys in flight and stores them.
func (s *Set) awaitAll() {
	for s.inFlight > 0 {
		(<-s.arrivals)()
	}
}

// Complete calls pass until none of its reads returns ErrPending. Between two passes it calls Fetch. If Fetch fails, reads of
// missing keys in the last pass return the error of Fetch.
func (s *Set) Complete(ctx context.Context, pass func()) {
	for pass(); s.pending; pass() {
		if err := s.Fetch(ctx); err != nil {
			s.Fail(err)
		}
	}
}

// Read makes a new Set and calls Complete. Each pass is one call of read with the Set.
func Read(ctx context.Context, sources Sources, read func(*Set)) {
	ctx, set, _ := With(ctx, sources)
	defer set.Done()
	set.Complete(ctx, func() { read(set) })
}
