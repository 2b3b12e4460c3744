package loaders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

// attempt returns a loader over s in a set that gathers.
func attempt(ctx context.Context, s *source, together bool) (*Set, *Loader[string, string], *market.Recorder) {
	ctx, recorder := market.WithRecorder(ctx)
	set := &Set{response: response{ctx: ctx, recorder: recorder}}
	l := newLoader[string, string](&set.response, market.KindPrice, s, together)
	set.Gather()
	return set, l, recorder
}

// What an attempt lacks leaves in one batch, however it was asked for, and is there for the next.
func TestAttemptsGatherWhatTheyLack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := (&source{}).cache("hit")
		set, l, recorder := attempt(t.Context(), s, true)
		start := time.Now()
		if !set.Attempts() || !set.InMemory() {
			t.Error("the set waits")
		}
		hit, err := l.Get("hit")
		if err != nil || set.Lacks() {
			t.Fatalf("what is cached is lacking: %v", err)
		}
		if _, err := l.Get("one"); err == nil || !set.Lacks() {
			t.Error("what is not there is not lacking")
		}
		if rs := getMany(l, "many", "one", "hit"); rs[0].Err == nil || rs[1].Err == nil || rs[2].Err != nil || *rs[2].Value.Value != *hit.Value {
			t.Errorf("%+v", rs)
		}
		l.Prefetch([]string{"ahead", "hit"})
		l.Recall([]string{"listed", "hit"}, func(i int, read *market.Read[*string]) {
			if i != 1 || *read.Value != *hit.Value {
				t.Errorf("%d: %v", i, *read.Value)
			}
		})
		if len(s.fetches) != 0 {
			t.Errorf("%v left during the attempt", s.fetches)
		}
		if !set.Advance(time.Minute) || set.Lacks() {
			t.Error("nothing has come")
		}
		want := []string{"one", "many", "ahead", "listed"}
		if len(s.fetches) != 1 || !slices.Equal(s.fetches[0], want) || time.Since(start) != 0 {
			t.Errorf("fetched %v after %s", s.fetches, time.Since(start))
		}
		looked := len(s.lookups)
		for i, got := range values(t, getMany(l, want...)) {
			if !strings.HasPrefix(got, want[i]+"#") {
				t.Errorf("%s for %s", got, want[i])
			}
		}
		listed := 0
		l.Recall(want, func(int, *market.Read[*string]) { listed++ })
		if set.Lacks() || len(s.lookups) != looked || listed != len(want) || len(recorder.Handles()) != 5 {
			t.Errorf("%d look-ups, %d listed, %d handles", len(s.lookups)-looked, listed, len(recorder.Handles()))
		}
		if set.Advance(time.Minute) {
			t.Error("another attempt is made though nothing can come")
		}
	})
}

// What has come is made use of after a while, but for that of which the rest travels alone: it waits until half of the time is gone.
func TestAttemptsDoNotWaitForTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &source{}
		s.fetch = func(keys []string) results {
			switch keys[0] {
			case "slow", "slower":
				<-release
			case "late":
				time.Sleep(10 * time.Second)
			default:
				time.Sleep(time.Second)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return results{s.answer(keys[0])}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		set, l, _ := attempt(ctx, s, false)
		others := newLoader[string, string](&set.response, market.KindPrice, s, true)
		start := time.Now()
		after := func(want time.Duration, fetches int) {
			t.Helper()
			if got := time.Since(start); got != want || len(s.fetches) != fetches {
				t.Fatalf("after %s: %v, want %d after %s", got, s.fetches, fetches, want)
			}
		}
		_, _ = l.Get("slow")
		_, _ = others.Get("quick")
		if !set.Advance(2 * time.Second) {
			t.Error("what has come is not made use of")
		}
		after(3*time.Second, 2)
		getMany(l, "quick", "late") // each of which is a call
		if !set.Advance(2 * time.Second) {
			t.Error("what has come is not made use of")
		}
		after(13*time.Second, 4)
		getMany(l, "quicker", "slower", "slow")
		if !set.Advance(2 * time.Second) {
			t.Error("what has come is not made use of")
		}
		after(13*time.Second+(4*time.Minute-13*time.Second)/2, 6)
		if rs := getMany(l, "slow", "quick", "late", "quicker", "slower"); rs[0].Err == nil || rs[1].Err != nil || rs[2].Err != nil || rs[3].Err != nil || rs[4].Err == nil || !set.Lacks() {
			t.Errorf("%+v", rs)
		}
		close(release)
		if !set.Advance(time.Minute) || time.Since(start) > 3*time.Minute {
			t.Error("what has come is not made use of")
		}
		values(t, getMany(l, "slow", "slower"))
	})
}

// What attempts have sent for is not asked for again by who waits then, and what they lacked last is sent for.
func TestWaitingAfterAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := &source{}
		s.fetch = func(keys []string) results {
			<-release
			s.mu.Lock()
			defer s.mu.Unlock()
			return results{s.answer(keys[0])}
		}
		ctx, cancel := context.WithCancel(t.Context())
		set, l, recorder := attempt(ctx, s, true)
		_, _ = l.Get("a")
		cancel()
		if set.Advance(time.Minute) {
			t.Error("the response's time is over")
		}
		_, _ = l.Get("b")
		set.Wait()
		if set.Attempts() || set.InMemory() {
			t.Error("the set does not wait")
		}
		if _, ok := l.Peek("a"); ok {
			t.Error("what is under way is there")
		}
		followed := 0
		l.follow([]string{"a", "b"}, func(rs results) { followed += len(values(t, rs)) })
		synctest.Wait()
		if fmt.Sprint(slices.SortedFunc(slices.Values(s.fetches), slices.Compare)) != "[[a] [b]]" || followed != 0 {
			t.Errorf("fetched %v, followed %d", s.fetches, followed)
		}
		close(release)
		values(t, getMany(l, "a", "b"))
		if followed != 2 || len(s.fetches) != 2 || len(recorder.Handles()) != 2 {
			t.Errorf("followed %d, fetched %v, %d handles", followed, s.fetches, len(recorder.Handles()))
		}
		l.follow([]string{"a", "b"}, func(rs results) { followed += len(values(t, rs)) })
		if followed != 4 {
			t.Error("what is there is not followed at once")
		}
	})
}

// A panic of a source is the error of the keys that were asked for.
func TestAttemptsSurvivePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{fetch: func([]string) results { panic("boom") }}
		set, l, _ := attempt(t.Context(), s, true)
		_, _ = l.Get("a")
		set.Advance(time.Minute)
		if _, err := l.Get("a"); err == nil || !strings.Contains(err.Error(), "boom") || set.Lacks() {
			t.Errorf("%v, lacking %v", err, set.Lacks())
		}
	})
}

// The greatest depth of a token's book is the one that is asked for, wherever in an attempt it comes.
func TestAttemptsReadOneBook(t *testing.T) {
	for _, depths := range [][]int{{5, 60, 30}, {60, 5, 30}, {5, 30, 60}} {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{}
			set := New(t.Context(), Sources{Books: s})
			set.Gather()
			for _, depth := range depths {
				if _, err := set.Book("a", depth); err == nil {
					t.Error("the book is there")
				}
			}
			if !set.Lacks() || !set.Advance(time.Minute) {
				t.Fatal("there is no other attempt")
			}
			for range 2 {
				for _, depth := range depths {
					if r, err := set.Book("a", depth); err != nil || r.Value.Depth != 200 {
						t.Errorf("%v: %+v, %v", depths, r.Value, err)
					}
				}
			}
			if len(s.fetched) != 1 || set.Lacks() {
				t.Errorf("%v: fetched %v", depths, s.fetched)
			}
		})
	}
}

// held is a source of books that holds those of so many levels or less, each an entry of its own.
type held struct {
	shelf
	depth int
}

func (h *held) Lookup(_ context.Context, keys []market.BookQuery, out []market.Result[market.Read[*market.Book]], missing []int) []int {
	for i, k := range keys {
		if k.Depth > h.depth {
			missing = append(missing, i)
			continue
		}
		out[i].Value.Value = &market.Book{TokenID: k.TokenID, Depth: k.Depth}
	}
	return missing
}

// A shallow book that was read before a deeper one was asked for is read anew, be that one cached or not, since a response shows one.
func TestAttemptsDeepenBooks(t *testing.T) {
	for _, depth := range []int{20, 200} {
		synctest.Test(t, func(t *testing.T) {
			set := New(t.Context(), Sources{Books: &held{depth: depth}})
			set.Gather()
			if r, err := set.Book("a", 5); err != nil || r.Value.Depth != 20 {
				t.Fatalf("%+v, %v", r.Value, err)
			}
			if _, err := set.Book("a", 60); err == nil || !set.Lacks() || !set.Advance(time.Minute) {
				t.Fatalf("%v, lacking %v", err, set.Lacks())
			}
			shallow, err1 := set.Book("a", 5)
			deep, err2 := set.Book("a", 60)
			if err1 != nil || err2 != nil || shallow.Value != deep.Value || set.Lacks() {
				t.Errorf("%v, %v", err1, err2)
			}
		})
	}
}

// Pages are read beside each other, each once.
func TestAttemptsReadPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &turner{}
		set := New(t.Context(), Sources{Pages: p})
		set.Gather()
		read := func() error {
			_, err1 := set.Search(market.Search{Text: "a"})
			_, err2 := set.Trades("x", market.TradeQuery{})
			_, err3 := set.History("x", market.HistoryQuery{})
			return errors.Join(err1, err2, err3)
		}
		if err := read(); err == nil || !set.Lacks() || len(p.asked) != 0 {
			t.Fatalf("%v, asked %v", err, p.asked)
		}
		_ = read()
		if !set.Advance(time.Minute) {
			t.Fatal("nothing has come")
		}
		if err := read(); err != nil || set.Lacks() || len(p.asked) != 3 {
			t.Errorf("%v, asked %v", err, p.asked)
		}
		p.fail = errors.New("down")
		_, _ = set.Search(market.Search{Text: "b"})
		set.Wait()
		if _, err := set.Search(market.Search{Text: "b"}); !errors.Is(err, p.fail) || len(p.asked) != 4 {
			t.Errorf("%v, asked %v", err, fmt.Sprint(p.asked))
		}
	})
}
