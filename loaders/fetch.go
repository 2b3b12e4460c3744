package loaders

import (
	"context"
	"time"

	"oddsgraph/internal/market"
)

const (
	// minPatience is the least time that Fetch waits for other values once the first has arrived, patienceOf how many times as
	// long as the last pass took it waits at least: what hangs on the first value must not wait for a slow call, and passes take a
	// fifth of a processor at most.
	minPatience = time.Millisecond
	patienceOf  = 4
	// maxArrivals is how many batches can hand over their results without waiting for the end of a pass.
	maxArrivals = 16
)

// response is what the loaders of a Set share. It belongs to the goroutine of the Set.
type response struct {
	// ctx is that of look-ups, calls that of the calls that Fetch makes, which cancel ends.
	ctx      context.Context
	calls    context.Context
	cancel   context.CancelFunc
	recorder *market.Recorder
	journal  *market.Journal
	// made counts the calls that the keys sent so far take, which are maxCalls at most unless that is 0.
	made, maxCalls int
	// refused is the error of keys that would have taken more.
	refused error

	// pending reports that the present pass has read a value that is not there yet.
	pending bool
	// failed is the error of keys that are missing from now on; nil as long as they can be fetched.
	failed error
	// began is when the present pass began.
	began time.Time
	// underway counts the keys that were sent and have not arrived.
	underway int
	// arrivals carries the results of batches to the goroutine of the Set.
	arrivals chan func()
}

// Pending reports whether the present pass has read a value that is not there yet. The pass is void then.
func (s *Set) Pending() bool { return s.pending }

// Fetch ends a pass that is pending: it sends the missing keys, one batch for each kind, and waits for values. ctx bounds the
// calls too. Fetch returns nil when another pass may find more: all values have arrived, or some have and the rest takes its
// time. Of keys that are a call each it waits for all, until half of the time that ctx has left, so that what hangs on them leaves
// together. At the end of ctx, or when the keys would take more calls than the response may make, it returns why; call Fail then.
func (s *Set) Fetch(ctx context.Context) error {
	patience := max(minPatience, patienceOf*time.Since(s.began))
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.take(); err != nil {
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

// take counts the calls of the missing keys. It returns an error if they are too many.
func (s *Set) take() error {
	var most market.Kind
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

// Calls returns the number of upstream calls that the keys fetched so far take by themselves. Some of them may have shared calls with
// other responses.
func (s *Set) Calls() int { return s.made }

// Refused returns the error of Fetch if the response would have taken too many upstream calls.
func (s *Set) Refused() error { return s.refused }

// await lands values as Fetch says.
func (s *Set) await(ctx context.Context, patience time.Duration) error {
	var enough, half <-chan time.Time
	late, last := false, false
	for s.underway > 0 && !(late && (last || !s.split())) {
		select {
		case land := <-s.arrivals:
			land()
			if enough == nil {
				t := time.NewTimer(patience)
				defer t.Stop()
				enough = t.C
			}
		case <-enough:
			late = true
			if deadline, ok := ctx.Deadline(); ok {
				t := time.NewTimer(time.Until(deadline) / 2)
				defer t.Stop()
				half = t.C
			}
		case <-half:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for {
		select {
		case land := <-s.arrivals:
			land()
		default:
			return nil
		}
	}
}

// split reports whether keys that are a call each have arrived in part.
func (s *Set) split() bool {
	for _, l := range s.loaders() {
		if l.split() {
			return true
		}
	}
	return false
}

// Fail ends fetching, after an error of Fetch: calls under way are cancelled, and results that have arrived are kept. From now on
// reads of what is missing return err, and no pass is pending.
func (s *Set) Fail(err error) {
	if s.cancel != nil {
		s.cancel()
	}
	s.land()
	s.failed, s.pending = err, false
	for _, l := range s.loaders() {
		l.fail(err)
	}
}

// land waits for all that is under way.
func (s *Set) land() {
	for s.underway > 0 {
		(<-s.arrivals)()
	}
}

// Complete calls pass until it reads nothing that is missing, and fetches what is between the calls. After an error of Fetch the
// last call gets errors for what is still missing.
func (s *Set) Complete(ctx context.Context, pass func()) {
	for pass(); s.pending; pass() {
		if err := s.Fetch(ctx); err != nil {
			s.Fail(err)
		}
	}
}

// Read calls read with a set of its own, repeatedly as Complete does.
func Read(ctx context.Context, of Sources, read func(*Set)) {
	ctx, set, _ := With(ctx, of)
	defer set.Done()
	set.Complete(ctx, func() { read(set) })
}
