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
// together. At the end of ctx it returns why; call Fail then.
func (s *Set) Fetch(ctx context.Context) error {
	patience := max(minPatience, patienceOf*time.Since(s.began))
	if ctx.Err() != nil {
		return context.Cause(ctx)
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

// Fail ends fetching, once the context of Fetch has ended: calls under way end with it, and their results are kept. From now on
// reads of what is missing return err, and no pass is pending.
func (s *Set) Fail(err error) {
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

// Complete calls pass until it reads nothing that is missing, and fetches what is between the calls. At the end of ctx the last
// call gets errors for what is missing still.
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
