package cache

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/ratelimit"
	"oddsgraph/internal/request"
)

// withCredentials returns a context with credentials that contain the given secret. With an empty secret, the context has no
// credentials.
func withCredentials(t testing.TB, secret string) context.Context {
	t.Helper()
	ctx := t.Context()
	if secret == "" {
		return ctx
	}
	c, err := market.ParseCredentials([]byte(`{"apiKey":"key","secret":"` + secret + `","passphrase":"phrase"}`))
	if err != nil {
		t.Fatal(err)
	}
	return request.WithCredentials(ctx, c)
}

// userReads contains a function for each kind of user data. Each function reads the data and returns the fingerprint of the
// credentials that the venue received.
var userReads = map[string]func(ctx context.Context, c *Cache, a market.Address) (seen string, err error){
	"positions": func(ctx context.Context, c *Cache, a market.Address) (string, error) {
		r, err := readOne(ctx, c.Positions(), a)
		if err != nil {
			return "", err
		}
		return (*r.Value)[0].Outcome, nil
	},
	"orders": func(ctx context.Context, c *Cache, a market.Address) (string, error) {
		r, err := readOne(ctx, c.Orders(), a)
		if err != nil {
			return "", err
		}
		return (*r.Value)[0].Outcome, nil
	},
	"trades": func(ctx context.Context, c *Cache, a market.Address) (string, error) {
		r, err := readOne(ctx, c.Trades(), queries.Trades{Limit: 10}.Key(a))
		if err != nil {
			return "", err
		}
		return r.Value.Trades[0].Outcome, nil
	},
	"history": func(ctx context.Context, c *Cache, a market.Address) (string, error) {
		r, err := readOne(ctx, c.Records(), queries.History{Limit: 10}.Key(a))
		if err != nil {
			return "", err
		}
		return r.Value.Records[0].Outcome, nil
	},
	"balance": func(ctx context.Context, c *Cache, a market.Address) (string, error) {
		r, err := readOne(ctx, c.Balances(), a)
		if err != nil {
			return "", err
		}
		return r.Value.CashBalance.String(), nil
	},
}

// TestCallersNeverShareUserData checks that callers with different credentials that read the same account share neither cached data
// nor calls.
func TestCallersNeverShareUserData(t *testing.T) {
	for name, read := range userReads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{latency: 20 * time.Millisecond}
				c := open(t, v)
				secrets := []string{"", "alice", "bob", "carol"}
				var wg sync.WaitGroup
				for i := range 200 {
					r := rand.New(rand.NewPCG(3, uint64(i)))
					wg.Go(func() {
						time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
						secret := secrets[r.IntN(len(secrets))]
						got, err := read(withCredentials(t, secret), c, wallet)
						if err != nil || got != fingerprint(request.CredentialsFrom(withCredentials(t, secret))) {
							t.Errorf("%q sees data of another caller, %v", secret, err)
						}
					})
				}
				wg.Wait()
				if n := len(v.calls()); n > 4*4 {
					t.Errorf("got %d calls, want at most 16: each of 4 credentials causes at most 4 calls in 5 s, because data expires after 1.5 s at the earliest", n)
				}
			})
		})
	}
}

// TestCredentialsStayWithTheirCaller checks that each call has the credentials of the caller whose account it reads, also a refresh
// that outlives its request.
func TestCredentialsStayWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: 20 * time.Millisecond}
		c := open(t, v, func(cfg *Config) { cfg.User = TTL{Fresh: 10 * time.Millisecond, Stale: time.Hour} })
		owners := map[string]string{}
		var wg sync.WaitGroup
		for i := range 40 {
			a, caller := market.Address(fmt.Sprintf("0x%040x", i)), withCredentials(t, fmt.Sprint("secret", i))
			owners[string(a)] = request.CredentialsFrom(caller).Wire()
			wg.Go(func() {
				for range 20 {
					ctx, leave := context.WithCancel(caller)
					if r, err := readOne(ctx, c.Balances(), a); err != nil || r.Value.CashBalance.String() != fingerprint(request.CredentialsFrom(caller)) {
						t.Errorf("%s got %+v and the error %v, want a value for its own credentials", a, r.Value, err)
					}
					leave()
					time.Sleep(15 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second) // the last refreshes end
		calls := v.calls()
		if len(calls) < 5*len(owners) {
			t.Errorf("got %d calls, want at least 5 refreshes for each of %d callers", len(calls), len(owners))
		}
		for _, call := range calls {
			if account := call.keys[0]; call.credentials != owners[account] {
				t.Errorf("a call for %s has the credentials %q, want %q", account, call.credentials, owners[account])
			}
		}
	})
}

// TestRefusedCredentials checks that a caller whose credentials the venue refuses gets the refusal even if the owner's data is
// cached.
func TestRefusedCredentials(t *testing.T) {
	for name, read := range userReads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &testVenue{fail: func(a ask) error {
					if !strings.Contains(a.credentials, "owner") {
						return market.Errorf(market.CodeForbidden, "not yours")
					}
					return nil
				}}
				c := open(t, v)
				for i := range 3 {
					if _, err := read(withCredentials(t, "owner"), c, wallet); err != nil {
						t.Fatal(err)
					}
					for _, other := range []string{"thief", ""} {
						if got, err := read(withCredentials(t, other), c, wallet); market.CodeOf(err) != market.CodeForbidden {
							t.Errorf("%q: got %s, %v; want FORBIDDEN", other, got, err)
						}
					}
					if n := len(v.calls()); n != 1+2*(i+1) {
						t.Errorf("got %d calls, want %d: one for the owner, and one for each refusal", n, 1+2*(i+1))
					}
				}
			})
		})
	}
}

// TestRefreshUsesReadersCredentials checks that a refresh of stale user data uses the credentials of the reader.
func TestRefreshUsesReadersCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v, func(cfg *Config) { cfg.User.Stale = time.Minute })
		for range 2 {
			for _, s := range []string{"alice", "bob"} {
				if _, err := readOne(withCredentials(t, s), c.Positions(), wallet); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		calls := v.calls()
		if len(calls) != 4 || calls[2].credentials == calls[3].credentials || !strings.Contains(calls[2].credentials+calls[3].credentials, "bob") {
			t.Errorf("got %d calls, want 4 with the credentials of each reader", len(calls))
		}
	})
}

// TestPublicCallsCarryNoCredentials checks that calls for public data carry no credentials, because several callers may share such
// a call.
func TestPublicCallsCarryNoCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		for range 2 {
			for _, k := range kinds {
				if _, _, err := k.read(withCredentials(t, "alice"), c); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(time.Minute + time.Second) // after this time, the next reads refresh stale values
		}
		if len(v.calls()) < 2*len(kinds)-4 {
			t.Errorf("got %d calls, want at least %d", len(v.calls()), 2*len(kinds)-4)
		}
		for _, a := range v.calls() {
			if (a.credentials != "") != a.endpoint.User() {
				t.Errorf("endpoint %s: got credentials %q, want credentials only for user data", a.endpoint, a.credentials)
			}
		}
	})
}

func TestPagesOfUserDataHaveTheirOwnEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		ctx, now := withCredentials(t, "alice"), time.Now()
		for range 2 {
			at, zero := queries.At(now), queries.At(time.Time{}) // zero differs from no bound
			trades := []queries.Trades{{}, {Limit: 10}, {MarketID: "m"}, {From: at}, {To: at}, {From: zero}, {To: zero}, {Page: "p"}}
			records := []queries.History{{}, {Limit: 10}, {Kinds: []market.HistoryKind{market.HistoryFee}},
				{Kinds: []market.HistoryKind{market.HistoryFee, market.HistoryTrade}}, {From: at}, {To: at}, {From: zero}, {To: zero}, {Page: "p"}}
			for _, q := range trades {
				want := fmt.Sprint(q.From, q.To, q.Limit, q.Page)
				if r, err := readOne(ctx, c.Trades(), q.Key(wallet)); err != nil || r.Value.Next != want || r.Value.Trades[0].MarketID != q.MarketID {
					t.Errorf("page of %+v: got %+v, error %v; want Next %q", q, r.Value, err, want)
				}
			}
			for _, q := range records {
				want := fmt.Sprint(q.Kinds, q.From, q.To, q.Limit, q.Page)
				if r, err := readOne(ctx, c.Records(), q.Key(wallet)); err != nil || r.Value.Next != want {
					t.Errorf("page of %+v: got %+v, error %v; want Next %q", q, r.Value, err, want)
				}
			}
			now = now.In(time.FixedZone("x", 3600)) // the same instant
		}
		if n := len(v.calls()); n != 8+9 {
			t.Errorf("got %d calls, want 17", n)
		}
	})
}

// TestFreshReads checks that a read with WithFresh uses neither a cached value nor the result of a call that started earlier.
func TestFreshReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{latency: time.Second}
		c := open(t, v)
		ctx, q := withCredentials(t, "alice"), queries.Trades{Limit: 10}
		var wg sync.WaitGroup
		read := func(ctx context.Context) {
			wg.Go(func() {
				if _, err := readOne(ctx, c.Trades(), q.Key(wallet)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		read(ctx)
		time.Sleep(time.Second / 2)
		read(request.WithFresh(ctx)) // makes a second call, although the first call is in flight
		read(ctx)                    // joins the second call
		wg.Wait()
		if n := len(v.calls()); n != 2 {
			t.Errorf("got %d calls, want 2", n)
		}
		read(ctx)
		read(request.WithFresh(ctx)) // makes a third call, although the value is cached
		wg.Wait()
		if n := len(v.calls()); n != 3 {
			t.Errorf("got %d calls, want 3", n)
		}
	})
}

// TestKeysContainNoCredentials checks that no key of an entry or a flight contains a readable credential.
func TestKeysContainNoCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &testVenue{}
		c := open(t, v)
		const secret = "v3ry-s3cr3t"
		ctx := withCredentials(t, secret)
		readEverything := func() {
			for _, k := range kinds {
				_, _, _ = k.read(ctx, c)
			}
		}
		readEverything()
		v.setUnknown(string(wallet), true)
		time.Sleep(10 * time.Second)
		readEverything()
		time.Sleep(10 * time.Second)
		synctest.Wait() // wait for the refreshes
		v.blocked = make(chan struct{})
		for range kinds {
			go readEverything()
		}
		synctest.Wait()

		count := 0
		printed := fmt.Sprintf("%+v", c)
		for _, keys := range keysOf(c) {
			count += keys.Len()
			printed += fmt.Sprintf("%+v %#v %x", keys, keys, keys)
		}
		for _, field := range []string{"balances", "positions", "orders", "trades", "userHistories"} {
			routes := reflect.ValueOf(c).Elem().FieldByName(field).Elem().FieldByName("routes")
			flights := routes.Index(0).Elem().FieldByName("flights")
			count += flights.Len()
			for _, key := range flights.MapKeys() {
				printed += fmt.Sprintf("%+v %#v", key, key)
			}
			printed += fmt.Sprintf("%+v", flights)
		}
		if count < 15 {
			t.Fatalf("got %d keys, want at least 15", count)
		}
		wire := request.CredentialsFrom(ctx).Wire()
		for _, form := range []string{secret, wire, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprint([]byte(secret)), "phrase"} {
			if strings.Contains(printed, strings.Trim(form, "[]")) {
				t.Errorf("a key contains a credential as %s", form)
			}
		}
	})
}

// keysOf returns the keys in c.names and in the stores of c, except event searches, categories and public trades.
func keysOf(c *Cache) (out []reflect.Value) {
	add := func(lists ...any) {
		for _, x := range lists {
			out = append(out, reflect.ValueOf(x))
		}
	}
	add(c.names.keys(), c.prices.entries.keys(), c.prices.absent.keys())
	add(c.spreads.entries.keys(), c.spreads.absent.keys(), c.books.entries.keys(), c.books.absent.keys(), c.histories.entries.keys(), c.histories.absent.keys())
	add(c.markets.entries.keys(), c.markets.absent.keys(), c.events.entries.keys(), c.events.absent.keys(), c.searches.entries.keys(), c.searches.absent.keys())
	add(c.balances.entries.keys(), c.balances.absent.keys(), c.positions.entries.keys(), c.positions.absent.keys(), c.orders.entries.keys(), c.orders.absent.keys())
	add(c.trades.entries.keys(), c.trades.absent.keys(), c.userHistories.entries.keys(), c.userHistories.absent.keys())
	return out
}

// TestScope checks that equal credentials and addresses have equal scopes in one process and different scopes in different
// processes.
func TestScope(t *testing.T) {
	a, b := newScope(nil, false), newScope(nil, false)
	ctx := withCredentials(t, "alice")
	if a.keyFor(ctx, wallet) != a.keyFor(withCredentials(t, "alice"), wallet) {
		t.Error("equal credentials have different keys")
	}
	if a.keyFor(ctx, wallet) == b.keyFor(ctx, wallet) {
		t.Error("two processes have the same keys")
	}
}

// TestPublicAccounts checks that all callers share the cache entries of accounts and the limit of public calls if accounts need no
// credentials. If accounts need credentials, callers must share neither.
func TestPublicAccounts(t *testing.T) {
	for _, public := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			v := &testVenue{}
			c, b := openLimited(t, v, ratelimit.Config{Public: 100, Key: 100}, func(cfg *Config) { cfg.PublicAccounts = public })
			scopes := map[string]bool{}
			for _, ctx := range []context.Context{t.Context(), withCredentials(t, "alice"), withCredentials(t, "bob")} {
				if _, err := readOne(ctx, c.Positions(), "0xa"); err != nil {
					t.Fatal(err)
				}
				scopes[c.Scope(ctx, "0xa")] = true
			}
			calls, secrets := len(v.calls()), b.Status().Scopes
			if want := map[bool][3]int{false: {3, 3, 2}, true: {1, 1, 0}}[public]; [3]int{calls, len(scopes), secrets} != want {
				t.Errorf("public %v: got %d calls, %d scopes and %d limits of credentials, want %v", public, calls, len(scopes), secrets, want)
			}
			for _, a := range v.calls() {
				if public && a.credentials != "" {
					t.Error("the venue got credentials")
				}
			}
		})
	}
}
