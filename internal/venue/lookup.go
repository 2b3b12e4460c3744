package venue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

const (
	// parallel is the greatest number of calls that one read makes at a time.
	parallel = 4
	// relearn is how long the client asks one by one before it tries the list form again.
	relearn = 10 * time.Minute
	// maxExtra bounds the calls by which one refused list is taken apart; it finds one bad id among 40.
	maxExtra = 12
)

// capability is what the venue turned out to know of a list parameter. It is safe for concurrent use.
type capability struct {
	name string
	// confirmed is set when the venue has answered a list.
	confirmed atomic.Bool
	// refusedUntil is the time, in nanoseconds since 1970, until which the parameter is not used.
	refusedUntil atomic.Int64
}

func (p *capability) lists(now time.Time) bool { return now.UnixNano() >= p.refusedUntil.Load() }

func (p *capability) refuse(now time.Time) {
	p.confirmed.Store(false)
	p.refusedUntil.Store(now.Add(relearn).UnixNano())
}

// answers is what one answer says about the ids that were asked for.
type answers[T any] struct {
	of map[string]market.Result[*T]
	// lost tells that a bad element could not be attributed, so that a missing id may have been in it.
	lost bool
	// foreign tells that the answer was about other ids as well.
	foreign bool
}

func newAnswers[T any](n int) answers[T] {
	return answers[T]{of: make(map[string]market.Result[*T], n)}
}

// lookup is a way of reading several things by their ids.
type lookup[T any] struct {
	endpoint reqctx.Endpoint
	// list and single are the parameters for several ids and for one.
	list   string
	single *parameter
	// learned is nil when the venue's own description has the list parameter.
	learned *capability
	// lone uses the single form for one id; else the list form is tried first even then.
	lone bool
	// decode reads an answer for the ids that were asked for.
	decode func(payload wire.Value, asked []string, n *notes) (answers[T], error)
}

// all reads the given ids: one result an id, in their order. Refused ids and bad elements cost their own result. The
// error is that of the calls, and not nil only when every call failed; the results say so too.
func (l *lookup[T]) all(ctx context.Context, c *Client, ids []string) ([]market.Result[*T], error) {
	results := make([]market.Result[*T], len(ids))
	keys := make([]string, 0, len(ids))
	at := make(map[string]int, len(ids))
	refused := false
	for i, id := range ids {
		if _, repeated := at[id]; repeated {
			continue
		}
		if err := checkID(l.endpoint, id); err != nil {
			results[i].Err = err
			continue
		}
		if err := c.backoffs.refusal(l.endpoint, id); err != nil {
			results[i].Err, refused = err, true
			continue
		}
		at[id] = len(keys)
		keys = append(keys, id)
	}
	answered := make([]market.Result[*T], len(keys))
	err := l.batches(ctx, c, keys, answered)
	err = l.settle(c, err, keys, answered)
	for i, id := range ids {
		if results[i].Err == nil {
			results[i] = answered[at[id]]
		}
	}
	if refused {
		err = nil // they differ in what they have to wait for
	}
	return results, err
}

// settle lets the keys that failed be left alone for a while, all keys of a call for the same time. It returns err as it
// stands in the results then.
func (l *lookup[T]) settle(c *Client, err error, keys []string, results []market.Result[*T]) error {
	failed := make(map[error][]int)
	for i := range results {
		failed[results[i].Err] = append(failed[results[i].Err], i)
	}
	for cause, places := range failed {
		of := make([]string, len(places))
		for i, place := range places {
			of[i] = keys[place]
		}
		told := c.backoffs.settle(l.endpoint, cause, of...)
		for _, place := range places {
			results[place].Err = told
		}
	}
	if err != nil && len(results) > 0 {
		return results[0].Err // every call failed
	}
	return err
}

// batches cuts the keys to the length of a list call.
func (l *lookup[T]) batches(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	if l.learned != nil && !l.learned.lists(c.clock.Now()) {
		return l.oneByOne(ctx, c, keys, out)
	}
	ends := l.pieces(c, keys)
	errs := make([]error, len(ends))
	each(len(errs), func(i int) {
		from := 0
		if i > 0 {
			from = ends[i-1]
		}
		errs[i] = l.batch(ctx, c, keys[from:ends[i]], out[from:ends[i]])
	})
	return allFailed(errs)
}

// batch asks for at most as many keys as one list call takes.
func (l *lookup[T]) batch(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	if len(keys) == 1 && l.alone() {
		return l.one(ctx, c, keys, out).err
	}
	if l.learned == nil || l.learned.confirmed.Load() {
		d := dissection{extra: maxExtra}
		err := l.known(ctx, c, keys, out, &d)
		if l.learned != nil && d.refused && !d.listed {
			l.learned.confirmed.Store(false)
		}
		return err
	}
	got := l.ask(ctx, c, l.list, keys, out)
	switch {
	case got.err == nil && got.hits > 0:
		l.learned.confirmed.Store(true)
		return nil
	case tooLong(got.err) && len(keys) > 1:
		c.lengths[l.endpoint].shorten(c, l.endpoint, keys)
		return l.batches(ctx, c, keys, out)
	case got.err != nil && !refusesForm(got.err), got.lost:
		return got.err
	}
	return l.learn(ctx, c, keys, out, got.err)
}

// alone reports whether one id is asked for by the single form: not where the venue is known to know lists, and its name for one
// id is not known.
func (l *lookup[T]) alone() bool {
	return l.lone && (l.learned == nil || !l.learned.confirmed.Load() || len(l.single.candidates()) == 1)
}

// one asks for one key, by each name that the venue may know it by until one is answered with what it asks for.
func (l *lookup[T]) one(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) (best asked) {
	names := l.single.candidates()
	for i, name := range names {
		var result [1]market.Result[*T]
		got := l.ask(ctx, c, name, keys, result[:])
		if i == 0 || best.err != nil || got.hits > 0 { // that nothing is there counts for more than a refusal
			best, out[0] = got, result[0]
		}
		switch {
		case got.hits > 0:
			l.single.confirm(name)
			return got
		case got.err != nil && !refusesForm(got.err):
			out[0] = result[0]
			return got
		case got.err != nil && len(names) == 1:
			l.single.doubt()
		}
	}
	return best
}

// maxProbes is the number of single calls that a list's answer is held against.
const maxProbes = 2

// learn finds out by single calls whether a list was refused, or answered without any of the ids (listErr is nil then),
// for its form or for the ids in it. out holds the list's answer. A venue that fails altogether costs two calls more.
func (l *lookup[T]) learn(ctx context.Context, c *Client, keys []string, out []market.Result[*T], listErr error) error {
	probes := maxProbes
	if listErr != nil && !refused(listErr) {
		probes = 1
	}
	var last error
	settled, i := false, 0
	for ; i < min(probes, len(keys)) && !settled; i++ {
		got := l.one(ctx, c, keys[i:i+1], out[i:i+1])
		last = got.err
		settled = got.err == nil && (listErr != nil || got.hits > 0)
	}
	switch {
	case settled:
		_ = l.oneByOne(ctx, c, keys[i:], out[i:])
		if proves(out) {
			l.learned.refuse(c.clock.Now())
			c.log.Info("the venue does not know a list parameter and is asked one by one", "endpoint", l.endpoint.String(), "parameter", l.list)
		}
		return nil
	case last == nil:
		return nil // nothing is there, whichever way the venue is asked
	case listErr == nil && refusesForm(last):
		clear(out[:i]) // it knows the list form only, and that says that nothing is there
		return nil
	case listErr == nil:
		listErr = last
	}
	for ; i < len(out); i++ {
		out[i] = market.Result[*T]{Err: listErr}
	}
	return listErr
}

// proves tells whether results of single calls show that the list that was asked for before should have been answered:
// something is there, and no id is such that the venue refuses it.
func proves[T any](results []market.Result[*T]) bool {
	hits := 0
	for _, r := range results {
		if r.Err != nil && refusesForm(r.Err) {
			return false
		}
		if r.Value != nil {
			hits++
		}
	}
	return hits > 0
}

// dissection is how a refused list is taken apart.
type dissection struct {
	// extra is the number of calls that may still be made.
	extra int
	// refused and listed tell whether lists of more than one key were refused and answered.
	refused, listed bool
	// halved reports that both halves of a list were answered.
	halved bool
}

// known asks with a list parameter that the venue is known to know. A refusal is then for one of the ids, and halving
// the list keeps that id from costing the others their answer.
func (l *lookup[T]) known(ctx context.Context, c *Client, keys []string, out []market.Result[*T], d *dissection) error {
	if len(keys) == 1 && l.alone() {
		return l.one(ctx, c, keys, out).err
	}
	got := l.ask(ctx, c, l.list, keys, out)
	if len(keys) == 1 {
		return got.err
	}
	d.listed = d.listed || got.err == nil
	switch {
	case tooLong(got.err):
		c.lengths[l.endpoint].shorten(c, l.endpoint, keys)
	case got.err == nil || !refusesForm(got.err):
		return got.err
	default:
		d.refused = true
		if d.extra < 2 || !refused(got.err) {
			return got.err
		}
		d.extra -= 2
	}
	half := len(keys) / 2
	errs := []error{l.known(ctx, c, keys[:half], out[:half], d), l.known(ctx, c, keys[half:], out[half:], d)}
	if errs[0] == nil && errs[1] == nil && half > 1 && !tooLong(got.err) && !d.halved {
		c.lengths[l.endpoint].shorten(c, l.endpoint, keys) // both halves are well, so the list was too long
	}
	d.halved = d.halved || errs[0] == nil && errs[1] == nil
	return allFailed(errs)
}

// oneByOne asks for each key in a call of its own. After the venue's rate limit was met no further call is made.
func (l *lookup[T]) oneByOne(ctx context.Context, c *Client, keys []string, out []market.Result[*T]) error {
	errs := make([]error, len(keys))
	var limited atomic.Pointer[market.Error]
	each(len(keys), func(i int) {
		if e := limited.Load(); e != nil {
			out[i], errs[i] = market.Result[*T]{Err: e}, e
			return
		}
		errs[i] = l.one(ctx, c, keys[i:i+1], out[i:i+1]).err
		var e *market.Error
		if errors.As(errs[i], &e) && e.Code == market.CodeRateLimited {
			limited.Store(e)
		}
	})
	return allFailed(errs)
}

// asked is how one call went.
type asked struct {
	// err is the call's own error, not that of an element.
	err error
	// hits is the number of keys that the answer had something for, be it bad.
	hits int
	// lost tells that there was a bad element that could not be attributed to a key.
	lost bool
}

// ask makes one call and writes a result for each key.
func (l *lookup[T]) ask(ctx context.Context, c *Client, parameter string, keys []string, out []market.Result[*T]) asked {
	rq := &request{endpoint: l.endpoint, keys: len(keys)}
	rq.query.list(parameter, keys)
	payload, err := c.get(ctx, rq)
	if len(keys) == 1 && (parameter != l.list || l.learned.confirmed.Load()) {
		if market.CodeOf(err) == market.CodeNotFound || err == nil && payload.IsNull() {
			out[0] = market.Result[*T]{}
			return asked{}
		}
	}
	var n notes
	var got answers[T]
	if err == nil {
		if got, err = l.decode(payload, keys, &n); err == nil && len(got.of) == 0 && got.foreign {
			err = unknownForm(l.endpoint, "the answer is about other ids")
		}
	}
	c.report(l.endpoint, n)
	if err != nil {
		err = orBad(l.endpoint, err)
		for i := range out {
			out[i] = market.Result[*T]{Err: err}
		}
		return asked{err: err}
	}
	for i, key := range keys {
		r, ok := got.of[key]
		if !ok && got.lost {
			r.Err = badElement(l.endpoint, errors.New("an element without a readable id may have been this one"))
		}
		out[i] = r
	}
	return asked{hits: len(got.of), lost: got.lost}
}

// each runs f for 0 to n-1, at most parallel at a time, and returns when all have. A panic of f is one of each.
func each(n int, f func(i int)) {
	if n == 1 {
		f(0)
		return
	}
	var next atomic.Int64
	var panicked atomic.Pointer[string]
	var wg sync.WaitGroup
	for range min(n, parallel) {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					text := fmt.Sprintf("%v\n%s", p, debug.Stack())
					panicked.Store(&text)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
}

// allFailed returns the first error when there is no nil among them.
func allFailed(errs []error) error {
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}
