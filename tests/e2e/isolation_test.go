package e2e

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"oddsgraph/graph/model"
)

const accountQuery = `query ($address: Address!) { user(address: $address) {
  address balance { cashBalance } positions(first: 500) { nodes { address tokenId size } } orders { totalCount } trades(first: 1) { nodes { tradeId } } history(first: 1) { nodes { id } }
} }`

// wantAccount compares the address, the cash and the positions in the data of accountQuery with the account at the demo venue.
func wantAccount(t *testing.T, s *service, data any, address string) {
	t.Helper()
	want := make([]string, 0, 50)
	for _, p := range s.venue.Positions(address)[:min(500, len(s.venue.Positions(address)))] {
		want = append(want, address+" "+p.TokenID+" "+p.Size.String())
	}
	var got []string
	for _, p := range list(data, "user.positions.nodes") {
		got = append(got, text(p, "address")+" "+text(p, "tokenId")+" "+text(p, "size"))
	}
	balance, _ := s.venue.Balance(address)
	if !slices.Equal(got, want) || text(data, "user.address") != address || text(data, "user.balance.cashBalance") != balance.CashBalance.String() {
		t.Errorf("the query for the account %s got %s", address, asJSON(data))
	}
}

var refusedFields = []string{"user.balance", "user.history", "user.orders", "user.positions", "user.trades"}

func wantRefused(t *testing.T, data any, errors []graphError, code string) {
	t.Helper()
	want := make([]string, len(refusedFields))
	for i, path := range refusedFields {
		want[i] = path + " " + code
		if got := at(data, path); got != nil {
			t.Errorf("%s is %s, want null", path, asJSON(got))
		}
	}
	wantErrors(t, errors, want...)
}

// TestCallersAreKeptApart checks that only clients with the right credentials can read an account while many clients query it. The
// clock stands still, so cached data stay fresh.
func TestCallersAreKeptApart(t *testing.T) {
	s := start(t, "--demo-latency=1ms")
	wrong := base64.StdEncoding.EncodeToString([]byte(`{"apiKey":"demo-50","secret":"wrong","passphrase":"demo"}`))
	callers := []struct{ name, key, address, code string }{
		{"the owner of 3 reads 3", keyOf3, addressOf3, ""},
		{"the owner of 50 reads 50", keyOf50, addressOf50, ""},
		{"the owner of 50 reads 50 with another label", credentials("demo-50", "label", "phone"), addressOf50, ""},
		{"the owner of 3 reads 50", keyOf3, addressOf50, "FORBIDDEN"},
		{"the owner of 50 reads 3", keyOf50, addressOf3, "FORBIDDEN"},
		{"the owner of 2000 reads 50", keyOf2000, addressOf50, "FORBIDDEN"},
		{"the reader of all accounts reads 50", keyOfAny, addressOf50, ""},
		{"the reader of all accounts reads another account", keyOfAny, addressOfAny, ""},
		{"a wrong secret reads 50", wrong, addressOf50, "UNAUTHENTICATED"},
		{"a client without credentials reads 50", anonymous, addressOf50, "UNAUTHENTICATED"},
	}
	var wg sync.WaitGroup
	for _, c := range callers {
		for range 4 {
			wg.Go(func() {
				for range 8 {
					data, errors := s.query(t, accountQuery, vars{"address": c.address}, c.key)
					if c.code == "" {
						wantErrors(t, errors)
						wantAccount(t, s, data, c.address)
					} else {
						wantRefused(t, data, errors, c.code)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestAnEntryBelongsToItsCaller checks that the service sends cached account data only to clients with the credentials that read
// these data. For other credentials, the service must call the venue. It must refuse requests without credentials.
func TestAnEntryBelongsToItsCaller(t *testing.T) {
	s := start(t)
	wantAccount(t, s, s.ask(t, accountQuery, vars{"address": addressOf50}, keyOf50), addressOf50)
	wantCalls(t, s.callsDuring(func() { s.ask(t, accountQuery, vars{"address": addressOf50}, keyOf50) }), calls{})

	asked := calls{"balance": {1, 1}, "positions": {1, 1}, "orders": {1, 1}, "trades": {1, 1}, "history": {1, 1}}
	wantCalls(t, s.callsDuring(func() {
		data, errors := s.query(t, accountQuery, vars{"address": addressOf50}, keyOf3)
		wantRefused(t, data, errors, "FORBIDDEN")
	}), asked)
	wantCalls(t, s.callsDuring(func() {
		wantAccount(t, s, s.ask(t, accountQuery, vars{"address": addressOf50}, keyOfAny), addressOf50)
	}), asked)
	wantCalls(t, s.callsDuring(func() {
		data, errors := s.query(t, accountQuery, vars{"address": addressOf50}, anonymous)
		wantRefused(t, data, errors, "UNAUTHENTICATED")
	}), calls{})
	// The service ignores the case of addresses, but compares credentials byte by byte.
	upper := "0X" + strings.ToUpper(addressOf50[2:])
	wantCalls(t, s.callsDuring(func() {
		wantAccount(t, s, s.ask(t, accountQuery, vars{"address": upper}, keyOf50), addressOf50)
	}), calls{})
	reordered := base64.StdEncoding.EncodeToString([]byte(`{ "passphrase":"demo", "secret":"demo","apiKey":"demo-50" }`))
	wantCalls(t, s.callsDuring(func() {
		wantAccount(t, s, s.ask(t, accountQuery, vars{"address": addressOf50}, reordered), addressOf50)
	}), asked)
}

func TestViewer(t *testing.T) {
	s := start(t)
	const query = `{ viewer { address positions { totalCount } } }`
	for _, test := range []struct{ name, key, want string }{
		{"anonymous", anonymous, `{"viewer":null}`},
		{"no address", keyOf3, `{"viewer":null}`},
		{"address", credentials("demo-3", "address", addressOf3), `{"viewer":{"address":"` + addressOf3 + `","positions":{"totalCount":3}}}`},
		{"address in upper case", credentials("demo", "address", "0x"+strings.ToUpper(addressOfAny[2:])), `{"viewer":{"address":"` + addressOfAny + `","positions":{"totalCount":50}}}`},
	} {
		wantJSON(t, test.name, s.ask(t, query, nil, test.key), test.want)
	}
	data, errors := s.query(t, query, nil, credentials("demo-3", "address", addressOf50))
	wantErrors(t, errors, "viewer.positions FORBIDDEN")
	wantJSON(t, "another account's address", data, `{"viewer":{"address":"`+addressOf50+`","positions":null}}`)
}

// accountFields returns queries and subscriptions for all data of an account, by name.
func accountFields(address string) map[string]string {
	fields := map[string]string{}
	for _, field := range []string{
		"balance { cashBalance }", "positions { totalCount }", "orders { totalCount }", "trades { totalCount }", "history { totalCount }",
		"portfolio { positionsValue }", "portfolio { totalValue availableCash }",
	} {
		fields[field] = fmt.Sprintf(`{ user(address: %q) { %s } }`, address, field)
	}
	for kind, parts := range map[string][]string{model.KindPosition: {address, "m", "YES"}, model.KindOrder: {address, "o"}} {
		fields[kind] = fmt.Sprintf(`{ node(id: %q) { id } }`, model.EncodeID(kind, parts...))
	}
	for _, name := range []string{"balanceChanged", "ordersChanged", "userTradesAdded", "portfolioChanged"} {
		fields[name] = fmt.Sprintf(`subscription { %s(address: %q) { reason } }`, name, address)
	}
	return fields
}

// TestAVenueThatChecksNoCredentials checks account data of a venue that accepts any credentials. Only a client in the accounts file
// may read account data, and only the data of its own account.
func TestAVenueThatChecksNoCredentials(t *testing.T) {
	emptyList := func(url.Values) (int, any) { return http.StatusOK, []any{} }
	v := newStub(t, map[string]func(url.Values) (int, any){
		"balance":   func(url.Values) (int, any) { return http.StatusOK, map[string]any{"cashBalance": "1"} },
		"positions": emptyList, "orders": emptyList, "trades": emptyList, "history": emptyList,
	})
	f := newAccountsFile(t)
	s := start(t, "--venue-url="+v.URL, "--venue-credentials=none", "--accounts-file="+f.path, "--venue-public-per-minute=0", "--venue-key-per-minute=0")
	ask := func(query, header, value string) string {
		r := s.request(t, asJSON(vars{"query": query}), anonymous)
		if header != "" {
			r.Header.Set(header, value)
		}
		if strings.HasPrefix(query, "subscription") {
			r.Header.Set("Accept", "text/event-stream")
		}
		return s.firstAnswer(t, r)
	}
	for field, query := range accountFields(addressOf50) {
		for name, test := range map[string]struct{ header, value, want string }{
			"invented credentials":         {"X-Venue-Credentials", credentials("anything"), `"UNAUTHENTICATED"`},
			"no credentials":               {"", "", `"UNAUTHENTICATED"`},
			"the token of another account": {"Authorization", "Bearer token-of-3", `"FORBIDDEN"`},
		} {
			if got := ask(query, test.header, test.value); !strings.Contains(got, test.want) {
				t.Errorf("%s with %s got %s, want %s", field, name, got, test.want)
			}
		}
	}
	for endpoint, n := range v.asked() {
		if slices.Contains([]string{"balance", "positions", "orders", "trades", "history"}, endpoint) {
			t.Errorf("the venue received %d calls for %s, want none", n[0], endpoint)
		}
	}
	for field, query := range accountFields(addressOf3) {
		if got := ask(query, "Authorization", "Bearer token-of-3"); strings.Contains(got, `"errors"`) && !strings.HasPrefix(query, "subscription") || got == "" {
			t.Errorf("%s with the token of the account got %s, want no error", field, got)
		}
	}
	if got := ask(`{ __typename }`, "X-Venue-Credentials", credentials("anything")); !strings.Contains(got, "bearer token") {
		t.Errorf("the refusal does not ask for a bearer token: %s", got)
	}
}

// firstAnswer returns the first JSON object of a response: the body, or the data of the first server-sent event. firstAnswer
// returns "" if the response has no object.
func (s *service) firstAnswer(t testing.TB, r *http.Request) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	resp, err := s.client.Do(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text := strings.TrimPrefix(lines.Text(), "data:"); strings.HasPrefix(strings.TrimSpace(text), "{") {
			return text
		}
	}
	return ""
}
