package ratelimit

import (
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/upstream"
)

// requestTo returns a request for an endpoint. The deadline is the present time plus d.
func requestTo(e upstream.Endpoint, d time.Duration) upstream.CallRequest {
	return upstream.CallRequest{Endpoint: e, Priority: upstream.PriorityPrices, Caller: "a", Deadline: within(d)}
}

// spendTo makes calls to an endpoint until a call is not admitted at once. It makes at most 10,000 calls. It returns the number of
// admitted calls.
func spendTo(b *Budget, e upstream.Endpoint) (n int) {
	for n < 10_000 && call(b, requestTo(e, time.Millisecond)) {
		n++
	}
	return n
}

var booksAndSpreads = []upstream.Endpoint{upstream.EndpointBook, upstream.EndpointSpreads}

func TestFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Public: 20, Families: []Family{
			{Endpoints: booksAndSpreads, Limit: 100, Span: 10 * time.Second},
			{Endpoints: []upstream.Endpoint{upstream.EndpointSearch}, Limit: 40, Span: time.Second},
		}})
		books, searches, public := spendTo(b, upstream.EndpointBook), spendTo(b, upstream.EndpointSearch), spendTo(b, upstream.EndpointMarketsByID)
		if books != 95 || searches != 38 || public != 19 {
			t.Errorf("%d books, %d searches and %d public calls were admitted; want 95, 38 and 19", books, searches, public)
		}
		if n := spendTo(b, upstream.EndpointSpreads); n != 0 {
			t.Errorf("%d calls of a full family were admitted, want 0", n)
		}
		if !b.Scarce("", upstream.EndpointSearch) || !b.Scarce("", upstream.EndpointMarketsByID) {
			t.Error("a call to a full family is not scarce")
		}
		// A waiting call is admitted when the first call leaves the window of the family.
		waiting := b.Reserve(requestTo(upstream.EndpointBook, time.Minute))
		defer waiting.Release(true)
		wantWaiting(t, waiting)
		time.Sleep(time.Second + skew)
		if n := spendTo(b, upstream.EndpointSearch); n != 38 {
			t.Errorf("%d searches were admitted after a second, want 38", n)
		}
		wantWaiting(t, waiting)
		time.Sleep(9 * time.Second)
		if synctest.Wait(); !admitted(waiting) {
			t.Error("the call for a book still waits after ten seconds")
		}
		if n := spendTo(b, upstream.EndpointMarketsByID); n != 0 {
			t.Errorf("%d public calls were admitted after ten seconds, want 0", n)
		}
	})
}

// TestBucket checks that the venue's token bucket always has enough tokens for the calls that the family admits.
func TestBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Families: []Family{Bucket(booksAndSpreads, 100, 200, 10)}})
		tokens, calls := 200.0, 0
		for range 600 {
			n := spendTo(b, upstream.EndpointBook)
			calls += n
			if tokens -= float64(10 * n); tokens < 0 {
				t.Fatalf("the bucket lacks %v tokens", -tokens)
			}
			time.Sleep(100 * time.Millisecond)
			tokens = min(tokens+10, 200)
		}
		if calls < 500 {
			t.Errorf("%d calls were admitted in a minute, want at least 500; the bucket has tokens for about 600", calls)
		}
	})
}

// TestThrottledFamily checks that a 429 response to a call of one family stops the calls to this family, but not the calls to
// another family.
func TestThrottledFamily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, Config{Families: []Family{
			{Endpoints: booksAndSpreads, Limit: 100, Span: 10 * time.Second},
			{Endpoints: []upstream.Endpoint{upstream.EndpointSearch}, Limit: 40, Span: time.Second},
		}})
		r := begin(t, b, requestTo(upstream.EndpointBook, time.Second))
		refuse(r, time.Minute)
		r.Release(true)
		if spendTo(b, upstream.EndpointSpreads) != 0 || spendTo(b, upstream.EndpointSearch) != 38 {
			t.Error("after a 429 to one family, this family was not blocked, or another family was blocked")
		}
		if s := b.Status(); !s.ThrottledUntil.Equal(within(10*time.Second + skew)) {
			t.Errorf("got ThrottledUntil %v, want the span of the family from now", s.ThrottledUntil)
		}
	})
}

// TestFamiliesAfterStart checks that half of a family's calls are free at the start, and the rest after its span.
func TestFamiliesAfterStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openCold(t, Config{Families: []Family{{Endpoints: booksAndSpreads, Limit: 100, Span: 10 * time.Second}}})
		if n := spendTo(b, upstream.EndpointBook); n != 48 {
			t.Errorf("%d calls were admitted at the start, want 48", n)
		}
		time.Sleep(10*time.Second + 2*skew)
		if n := spendTo(b, upstream.EndpointBook); n != 95 {
			t.Errorf("%d calls were admitted after the span of the family, want 95", n)
		}
	})
}
