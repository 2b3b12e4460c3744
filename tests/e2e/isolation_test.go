package e2e

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"testing"
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
