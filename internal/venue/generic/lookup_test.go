package generic

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/tests/tool"
)

const detailsPath = "/api/exchange/market-details"

// marketNumber returns the number in the id of a market or token. The fake venue has the markets M0 to M99. Market M0 has the token
// T0, market M1 the token T1, and so on.
func marketNumber(id, letter string) (n string, ok bool) {
	n, ok = strings.CutPrefix(id, letter)
	return n, ok && len(n) > 0 && len(n) < 3 && strings.Trim(n, "0123456789") == ""
}

func marketJSON(n string) string {
	return fmt.Sprintf(`{"marketId":"M%s","slug":"s%s","question":"?","description":"","outcomes":[{"tokenId":"T%s","outcome":"YES"}]}`, n, n, n)
}

// partialVenue serves the endpoint market-details, but refuses some requests.
type partialVenue struct {
	// refuse responds to requests with a list parameter. If refuse is nil, the venue serves the list.
	refuse http.HandlerFunc
	// The venue refuses every request that contains badID.
	badID string
	// If noTokenList is true, refuse responds only to the parameter tokenIds, and the venue serves the parameter ids.
	noTokenList bool
}

func (o *partialVenue) details(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, values := range q {
		ids := strings.Split(values[0], ",")
		list := name == "ids" || name == "tokenIds"
		switch {
		case o.badID != "" && slices.Contains(ids, o.badID):
			answerWith(400, "application/json", `{"success":false,"error":"bad id","code":"BAD_REQUEST"}`)(w, r)
			return
		case list && o.refuse != nil && (name == "tokenIds" || !o.noTokenList):
			o.refuse(w, r)
			return
		}
		var rows []string
		for _, id := range ids {
			letter := "M"
			if name == "tokenId" || name == "tokenIds" {
				letter = "T"
			}
			if n, ok := marketNumber(id, letter); ok {
				rows = append(rows, marketJSON(n))
			}
		}
		switch {
		case list:
			answer(`{"markets":[`+strings.Join(rows, ",")+`]}`)(w, r)
		case len(rows) == 0:
			answerWith(404, "application/json", `{"success":false,"error":"unknown","code":"NOT_FOUND"}`)(w, r)
		default:
			answer(rows[0])(w, r)
		}
	}
}

// maxBisectCalls is the number of calls that rest.Lookup may make for the parts of a refused list.
const maxBisectCalls = 12

func marketIDs(results []upstream.Result[*market.Market]) string {
	return strings.ReplaceAll(showResults(results, func(m *market.Market) string { return m.MarketID }), "\n", " ")
}

var refusals = map[string]http.HandlerFunc{
	"400":              answerWith(400, "application/json", `{"success":false,"error":"id is required"}`),
	"404":              answerWith(404, "application/json", `{"success":false,"error":"not found"}`),
	"405":              answerWith(405, "application/json", ""),
	"422":              answerWith(422, "application/json", `{"success":false,"error":"ids is not known"}`),
	"501":              answerWith(501, "application/json", ""),
	"200 with failure": answer(`{"success":false,"error":"id is required"}`),
	"another market":   answer(marketJSON("77")),
	"only one market":  answer(marketJSON("1")),
	"other markets":    answer(`[` + marketJSON("77") + `,` + marketJSON("78") + `]`),
	"an empty list":    answer(`{"markets":[]}`),
	"another object":   answer(`{"hello":"world"}`),
}

// TestRefusedLists checks that a list that the venue refuses is an error that names the setting, and that it changes nothing: the
// client asks and counts the calls of the next read in the same way.
func TestRefusedLists(t *testing.T) {
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			odd := &partialVenue{refuse: refuse}
			v := newVenue(t, map[string]http.HandlerFunc{detailsPath: odd.details})
			o := &recordingObserver{}
			c := v.client(t, func(cfg *Config) { cfg.Observer, cfg.Clock = o, tool.NewClock(time.Unix(1_700_000_000, 0)) })
			results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1", "M2", "M3"})
			switch names := err != nil && strings.Contains(err.Error(), "market-ids:ids"); name {
			case "an empty list", "404": // the venue may know none of them
				must(t, err)
				assertEqual(t, marketIDs(results), "absent absent absent")
			case "200 with failure": // the venue may be down
				assertEqual(t, string(market.CodeOf(err)), string(market.CodeUpstreamUnavailable))
			default:
				if assertEqual(t, marketIDs(results), strings.Repeat(" UPSTREAM_BAD_RESPONSE", 3)[1:]); !names {
					t.Errorf("got the error %v, want one that names the setting", err)
				}
			}
			if got := c.Cost(upstream.EndpointMarketsByID, 3, 6); got != 1 {
				t.Errorf("after the refusal, the cost of three ids is %d, want 1", got)
			}
			if got := strings.Contains(o.driftText(), "contradicts market-ids"); got != (err != nil && strings.Contains(err.Error(), "market-ids")) {
				t.Errorf("the drift is %q", o.driftText())
			}
		})
	}
}

// TestUndecidedLists checks that the client asks for ids one by one until it knows better.
func TestUndecidedLists(t *testing.T) {
	odd := &partialVenue{}
	v := newVenue(t, map[string]http.HandlerFunc{detailsPath: odd.details})
	c := v.client(t, undecided)
	results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1", "none"})
	must(t, err)
	assertEqual(t, marketIDs(results), "M1 absent")
	results, err = c.MarketsByToken(t.Context(), upstream.Call{}, []string{"T1", "Tx"})
	must(t, err)
	assertEqual(t, marketIDs(results), "M1 absent")
	if got := c.Cost(upstream.EndpointMarketsByID, 3, 6) + c.Cost(upstream.EndpointMarketsByToken, 3, 6); got != 6 {
		t.Errorf("the cost of three markets and three tokens is %d, want 6", got)
	}
	got := v.queries()
	slices.Sort(got)
	assertEqual(t, strings.Join(got, "; "), "marketId=M1; marketId=none; tokenId=T1; tokenId=Tx")
}

// TestBadIDsDoNotDisableLists checks that the client still sends lists after the venue has refused a list because of one bad id.
func TestBadIDsDoNotDisableLists(t *testing.T) {
	odd := &partialVenue{badID: "M13"}
	v := newVenue(t, map[string]http.HandlerFunc{detailsPath: odd.details})
	c := v.client(t)
	for range 2 {
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, []string{"M1", "M13", "M2"})
		must(t, err)
		assertEqual(t, marketIDs(results), "M1 UPSTREAM_BAD_RESPONSE M2")
		if got := c.Cost(upstream.EndpointMarketsByID, 3, 7); got != 1 {
			t.Fatalf("after the refusal of a bad id, the cost of a list is %d, want 1", got)
		}
	}
}

// TestOneBadIDAmongMany reads 40 ids. The venue refuses every list that contains the one bad id. The client must read the other 39
// ids with a bounded number of calls.
func TestOneBadIDAmongMany(t *testing.T) {
	for _, badIndex := range []int{0, 13, 39} {
		odd := &partialVenue{}
		v := newVenue(t, map[string]http.HandlerFunc{detailsPath: odd.details})
		c := v.client(t)
		ids := idsOf("M%d", 40)
		if _, err := c.MarketsByID(t.Context(), upstream.Call{}, ids); err != nil || v.count() != 1 {
			t.Fatalf("the first read returned the error %v after %d calls, want no error after 1", err, v.count())
		}
		odd.badID = ids[badIndex]
		results, err := c.MarketsByID(t.Context(), upstream.Call{}, ids)
		must(t, err)
		for i, r := range results {
			if i == badIndex {
				if market.CodeOf(r.Err) != market.CodeUpstreamBadResponse {
					t.Errorf("the bad id has the error %v, want %s", r.Err, market.CodeUpstreamBadResponse)
				}
			} else if r.Value == nil || r.Value.MarketID != ids[i] {
				t.Errorf("the result of %s is %+v, want its market", ids[i], r)
			}
		}
		if n := v.count() - 1; n > maxBisectCalls+1 {
			t.Errorf("the read made %d calls, want at most %d", n, maxBisectCalls+1)
		}
	}
}

// TestFailingVenueGetsFewCalls checks that the client does not make a call for each id after the call for the list has failed.
func TestFailingVenueGetsFewCalls(t *testing.T) {
	ids := idsOf("T%d", 40)
	for name, h := range map[string]http.HandlerFunc{
		"429": answerWith(429, "application/json", `{}`), "500": answerWith(500, "application/json", `{}`),
		"503": answerWith(503, "application/json", `{}`), "HTML": answerWith(200, "text/html", "<p>"), "empty": answer(""),
		"truncated": answer(`{"markets":[`), "success false": answer(`{"success":false}`), "error": answer(`{"error":"x"}`),
		"wrong types": answer(`{"prices":[{"tokenId":true,"price":"x"}],"markets":[{"marketId":{}}],"spreads":[7]}`), "empty object": answer(`{}`),
		"reset": reset, "redirect": answerWith(302, "", ""),
	} {
		for lookup, most := range map[string]int{"prices": 1, "spreads": 2, "markets": 1, "tokens": 1} {
			v := newVenue(t, everywhere(h))
			c := v.client(t)
			var results []error
			var err error
			switch lookup {
			case "prices":
				results, err = errorsOf(c.Prices(t.Context(), upstream.Call{}, ids))
			case "spreads":
				results, err = errorsOf(c.Spreads(t.Context(), upstream.Call{}, ids))
			case "markets":
				results, err = errorsOf(c.MarketsByID(t.Context(), upstream.Call{}, ids))
			case "tokens":
				results, err = errorsOf(c.MarketsByToken(t.Context(), upstream.Call{}, ids))
			}
			if v.count() > most {
				t.Errorf("with the response %q, the read of %s made %d calls, want at most %d", name, lookup, v.count(), most)
			}
			if name != "wrong types" && err == nil {
				t.Errorf("with the response %q, the read of %s returned no error", name, lookup)
			}
			for i, e := range results {
				if e == nil {
					t.Fatalf("with the response %q, element %[3]d of the read of %[2]s has no error", name, lookup, i)
				}
			}
		}
	}
}

func errorsOf[T any](results []upstream.Result[*T], err error) ([]error, error) {
	errs := make([]error, len(results))
	for i, r := range results {
		errs[i] = r.Err
	}
	return errs, err
}

func TestNoFurtherCallsAfterTheRateLimit(t *testing.T) {
	v := newVenue(t, map[string]http.HandlerFunc{detailsPath: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "9")
		answerWith(429, "application/json", "{}")(w, r)
	}})
	results, err := v.client(t, undecided).MarketsByID(t.Context(), upstream.Call{}, idsOf("M%d", 40))
	if market.CodeOf(err) != market.CodeRateLimited {
		t.Errorf("the read returned %v, want %s", err, market.CodeRateLimited)
	}
	for _, r := range results {
		if market.CodeOf(r.Err) != market.CodeRateLimited {
			t.Errorf("an element has the error %v, want %s", r.Err, market.CodeRateLimited)
		}
	}
	if v.count() > rest.Parallel {
		t.Errorf("the read made %d calls, want at most %d", v.count(), rest.Parallel)
	}
}

func TestLongListsAreSplit(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, r *http.Request) {
		ids := strings.Split(r.URL.Query().Get("tokenIds"), ",")
		if slices.Contains(ids, "T45") {
			answerWith(500, "application/json", "{}")(w, r)
			return
		}
		var rows []string
		for _, id := range ids {
			rows = append(rows, fmt.Sprintf(`{"tokenId":%q,"price":0.5}`, id))
		}
		answer(`{"prices":[`+strings.Join(rows, ",")+`]}`)(w, r)
	}))
	c := v.client(t, func(cfg *Config) { cfg.MaxIDs = 40 })
	if got := c.Cost(upstream.EndpointPrices, 100, 290); got != 3 {
		t.Errorf("the cost is %d, want 3", got)
	}
	ids := idsOf("T%d", 100)
	results, err := c.Prices(t.Context(), upstream.Call{}, ids)
	if err != nil || v.count() != 3 {
		t.Fatalf("the read returned the error %v after %d calls, want no error after 3", err, v.count())
	}
	for i, r := range results {
		failed := i >= 40 && i < 80
		if failed != (market.CodeOf(r.Err) == market.CodeUpstreamUnavailable) || !failed && r.Value.TokenID != ids[i] {
			t.Errorf("the result of %s is %+v, want an error: %t", ids[i], r, failed)
		}
	}
}

func TestEmptyListMakesNoCall(t *testing.T) {
	c := newVenue(t, nil).client(t)
	results, err := c.Prices(t.Context(), upstream.Call{}, nil)
	if err != nil || len(results) != 0 {
		t.Errorf("got the results %v and the error %v, want neither", results, err)
	}
}

func TestCost(t *testing.T) {
	c := newVenue(t, nil).client(t, func(cfg *Config) { cfg.MaxIDs = 10 })
	for _, tt := range []struct {
		e          upstream.Endpoint
		keys, want int
	}{
		{upstream.EndpointPrices, 0, 0}, {upstream.EndpointPrices, -1, 0}, {upstream.EndpointPrices, 1, 1}, {upstream.EndpointPrices, 10, 1}, {upstream.EndpointPrices, 11, 2},
		{upstream.EndpointSpreads, 21, 3}, {upstream.EndpointMarketsByID, 10, 1}, {upstream.EndpointMarketsByToken, 11, 2},
		{upstream.EndpointBook, 7, 7}, {upstream.EndpointPriceHistory, 2, 2}, {upstream.EndpointPositions, 1, 1},
	} {
		if got := c.Cost(tt.e, tt.keys, 3*tt.keys); got != tt.want {
			t.Errorf("Cost(%s, %d) = %d, want %d", tt.e, tt.keys, got, tt.want)
		}
	}
}

// TestSingleCallsAreBounded checks that at most rest.Parallel calls for single ids run at once, and that these calls end with the
// context of the read.
func TestSingleCallsAreBounded(t *testing.T) {
	var inFlight, most atomic.Int32
	odd := &partialVenue{}
	released := make(chan struct{})
	var gated atomic.Bool
	v := newVenue(t, map[string]http.HandlerFunc{detailsPath: func(w http.ResponseWriter, r *http.Request) {
		n := inFlight.Add(1)
		defer inFlight.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if gated.Load() {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		odd.details(w, r)
	}})
	c := v.client(t, undecided)
	results, err := c.MarketsByID(t.Context(), upstream.Call{}, idsOf("M%d", 40))
	if err != nil || results[39].Value == nil {
		t.Fatal(err)
	}
	if most.Load() > rest.Parallel {
		t.Errorf("%d calls were in flight, want at most %d", most.Load(), rest.Parallel)
	}
	gated.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.MarketsByID(ctx, upstream.Call{}, idsOf("M%d", 40)); market.CodeOf(err) != market.CodeUpstreamTimeout {
		t.Errorf("got %v, want %s", err, market.CodeUpstreamTimeout)
	}
	close(released)
}

func TestResponseForOtherIDs(t *testing.T) {
	v := newVenue(t, everywhere(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `[{"tokenId":"777","price":0.5,"spread":0.1},{"tokenId":"778","price":0.5,"spread":0.1}]`)
	}))
	c := v.client(t)
	if _, err := c.Prices(t.Context(), upstream.Call{}, []string{"101", "102"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Prices returned %v, want %s", err, market.CodeUpstreamBadResponse)
	}
	if _, err := c.Spreads(t.Context(), upstream.Call{}, []string{"101"}); market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("Spreads returned %v, want %s", err, market.CodeUpstreamBadResponse)
	}
}

// TestBisectionIsBounded checks that the client makes a bounded number of calls if the venue refuses every list.
func TestBisectionIsBounded(t *testing.T) {
	v := newVenue(t, everywhere(answerWith(400, "application/json", `{"success":false,"error":"no"}`)))
	results, err := v.client(t).Prices(t.Context(), upstream.Call{}, idsOf("T%d", 40))
	if market.CodeOf(err) != market.CodeUpstreamBadResponse || v.count() > maxBisectCalls+1 {
		t.Errorf("the read returned %v after %d calls, want %s after at most %d", err, v.count(), market.CodeUpstreamBadResponse, maxBisectCalls+1)
	}
	for i, r := range results {
		if r.Err == nil {
			t.Errorf("element %d has no error", i)
		}
	}
}

func TestOneElementForSeveralIDs(t *testing.T) {
	results, err := newVenue(t, everywhere(answer(goldenFile(t, "prices/object")))).client(t).Prices(t.Context(), upstream.Call{}, []string{"101", "102"})
	if market.CodeOf(err) != market.CodeUpstreamBadResponse {
		t.Errorf("got %v and the error %v, want %s", results, err, market.CodeUpstreamBadResponse)
	}
}

// TestForEachPassesPanicsOn checks that a panic in one of the calls reaches the caller of ForEach, even if the panic happens on
// another goroutine.
func TestForEachPassesPanicsOn(t *testing.T) {
	for _, n := range []int{1, 5} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "boom") || n > 1 && !strings.Contains(fmt.Sprint(p), "TestForEachPassesPanicsOn") {
					t.Errorf("ForEach with %d calls panicked with %v, want boom with the stack of the call", n, p)
				}
			}()
			rest.ForEach(n, func(i int) {
				if i == n-1 {
					panic("boom")
				}
			})
		}()
	}
}

// pricesUpTo returns a handler that responds with prices. If the URL has more than maxBytes bytes or more than maxIDs ids, the
// handler responds with the given status.
func pricesUpTo(maxBytes, maxIDs, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		asked := strings.Split(r.URL.Query().Get("tokenIds")+r.URL.Query().Get("tokenId"), ",")
		if len("http://"+r.Host+r.URL.RequestURI()) > maxBytes || len(asked) > maxIDs {
			answerWith(status, "application/json", `{"success":false,"message":"too long"}`)(w, r)
			return
		}
		var rows []string
		for _, id := range asked {
			rows = append(rows, fmt.Sprintf(`{"tokenId":%q,"price":0.5}`, id))
		}
		answer(`{"prices":[`+strings.Join(rows, ",")+`]}`)(w, r)
	}
}

// TestListsFitURLs checks how many calls the client makes for lists of short and long ids, and that no URL is too long.
func TestListsFitURLs(t *testing.T) {
	for _, tt := range []struct{ ids, digits, maxURL, calls int }{
		{50, 19, 0, 1}, {90, 19, 0, 1}, {26, 77, 0, 2}, {24, 77, 0, 1}, {50, 77, 8 << 10, 1}, {8, 256, 0, 2}, {100, 3, 0, 1}, {101, 3, 0, 2},
	} {
		length := cmp.Or(tt.maxURL, DefaultMaxURL)
		v := newVenue(t, everywhere(pricesUpTo(length, 1000, 414)))
		c := v.client(t, with(func(table *Table) { table[settingMaxURL] = strconv.Itoa(length) }))
		ids := idsOf(fmt.Sprintf("%%0%dd", tt.digits), tt.ids)
		if got := c.Cost(upstream.EndpointPrices, tt.ids, tt.ids*tt.digits); got != tt.calls {
			t.Errorf("the cost of %d ids of %d digits is %d, want %d", tt.ids, tt.digits, got, tt.calls)
		}
		results, err := c.Prices(t.Context(), upstream.Call{}, ids)
		if err != nil || v.count() != tt.calls {
			t.Errorf("the read of %d ids of %d digits returned the error %v after %d calls, want %d calls", tt.ids, tt.digits, err, v.count(), tt.calls)
		}
		for i, r := range results {
			if r.Value == nil || r.Value.TokenID != ids[i] {
				t.Errorf("the result of %s is %+v, want its price", ids[i], r)
			}
		}
		for _, r := range v.requests {
			if n := len(v.URL + r.URL.RequestURI()); n > length {
				t.Errorf("a URL has %d bytes, want at most %d", n, length)
			}
		}
	}
}

// TestLongListsAreHalved checks that the client halves a list that the venue refuses because the URL is too long or the list has too
// many ids. The refusal changes nothing for the next read.
func TestLongListsAreHalved(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"414": pricesUpTo(1300, 1000, 414), "431, undecided": pricesUpTo(1300, 1000, 431), "400": pricesUpTo(1300, 1000, 400), "400 for too many ids": pricesUpTo(10_000, 50, 400),
	} {
		t.Run(name, func(t *testing.T) {
			v, o := newVenue(t, everywhere(h)), &recordingObserver{}
			c := v.client(t, func(cfg *Config) {
				if cfg.Observer = o; name != "431, undecided" {
					cfg.Table[settingMaxURL] = "2048"
				}
			})
			ids := idsOf("%019d", 80)
			for i := range 2 {
				results, err := c.Prices(t.Context(), upstream.Call{}, ids)
				must(t, err)
				for i, r := range results {
					if r.Value == nil || r.Value.TokenID != ids[i] {
						t.Errorf("the result of %s is %+v, want its price", ids[i], r)
					}
				}
				if got := v.count(); got != 3*(i+1) {
					t.Errorf("after read %d there are %d calls, want %d", i, got, 3*(i+1))
				}
			}
			if tooLong := name == "414"; strings.Contains(o.driftText(), "prices: contradicts max-url") != tooLong {
				t.Errorf("the drift is %q, want one that names max-url: %t", o.driftText(), tooLong)
			}
			if got := c.Cost(upstream.EndpointPrices, 80, 80*19); got != 1 {
				t.Errorf("the cost of 80 ids is %d, want 1", got)
			}
		})
	}
}
