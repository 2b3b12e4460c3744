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
	"oddsgraph/internal/market/reqctx"
)

// as returns a context of a caller with credentials made of a secret; the empty one is anonymous.
func as(t testing.TB, secret string) context.Context {
	t.Helper()
	ctx := t.Context()
	if secret == "" {
		return ctx
	}
	c, err := market.ParseCredentials([]byte(`{"apiKey":"key","secret":"` + secret + `","passphrase":"phrase"}`))
	if err != nil {
		t.Fatal(err)
	}
	return reqctx.WithCredentials(ctx, c)
}

// userReads are all reads of user data, each with what tells whose eyes saw the value.
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

// Callers with different credentials for one account never share, whether the data is cached or on its way.
func TestCallersNeverShareUserData(t *testing.T) {
	for name, read := range userReads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &venue{latency: 20 * time.Millisecond}
				c := open(t, v)
				secrets := []string{"", "alice", "bob", "carol"}
				var wg sync.WaitGroup
				for i := range 200 {
					r := rand.New(rand.NewPCG(3, uint64(i)))
					wg.Go(func() {
						time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
						secret := secrets[r.IntN(len(secrets))]
						got, err := read(as(t, secret), c, wallet)
						if err != nil || got != seen(as(t, secret)) {
							t.Errorf("%q sees what is another's, %v", secret, err)
						}
					})
				}
				wg.Wait()
				if n := len(v.calls()); n > 4*3 {
					t.Errorf("%d calls: callers with equal credentials share", n)
				}
			})
		})
	}
}

// Refused credentials get the refusal although what the account's owner read is fresh, and leave it alone.
func TestRefusedCredentialsGetTheError(t *testing.T) {
	for name, read := range userReads {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &venue{fail: func(a ask) error {
					if !strings.Contains(a.credentials, "owner") {
						return market.Errorf(market.CodeForbidden, "not yours")
					}
					return nil
				}}
				c := open(t, v)
				for i := range 3 {
					if _, err := read(as(t, "owner"), c, wallet); err != nil {
						t.Fatal(err)
					}
					for _, other := range []string{"thief", ""} {
						if got, err := read(as(t, other), c, wallet); market.CodeOf(err) != market.CodeForbidden {
							t.Errorf("%q sees %s, %v", other, got, err)
						}
					}
					if n := len(v.calls()); n != 1+2*(i+1) {
						t.Errorf("%d calls: the owner's is cached, a refusal is not", n)
					}
				}
			})
		})
	}
}

func TestAccountsNeverShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		other := market.Address("0x2222222222222222222222222222222222222222")
		ctx := as(t, "alice")
		r := readAll(ctx, c.Positions(), wallet, other, wallet)
		if r[0].Value.Handle != r[2].Value.Handle || r[0].Value.Handle == r[1].Value.Handle || len(v.calls()) != 2 {
			t.Errorf("%+v, %d calls", r, len(v.calls()))
		}
		for _, a := range v.calls() {
			if a.credentials != reqctx.CredentialsFrom(ctx).Wire() {
				t.Errorf("asked with %s", a.credentials)
			}
		}
	})
}

// A stale entry of user data, where an operator allows it, is refreshed as the one who reads it.
func TestRefreshOfUserDataIsMadeAsItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v, func(cfg *Config) { cfg.User.Stale = time.Minute })
		for range 2 {
			for _, s := range []string{"alice", "bob"} {
				if _, err := readOne(as(t, s), c.Positions(), wallet); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(2 * time.Second)
		}
		calls := v.calls()
		if len(calls) != 4 || calls[2].credentials == calls[3].credentials || !strings.Contains(calls[2].credentials+calls[3].credentials, "bob") {
			t.Errorf("%d calls", len(calls))
		}
	})
}

// A call for public data is many callers', and carries nobody's credentials.
func TestPublicCallsCarryNoCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		for range 2 {
			for _, k := range kinds {
				if _, _, err := k.read(as(t, "alice"), c); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			time.Sleep(time.Minute + time.Second) // stale, so that refreshes are looked at too
		}
		if len(v.calls()) < 2*len(kinds)-4 {
			t.Errorf("only %d calls", len(v.calls()))
		}
		for _, a := range v.calls() {
			if (a.credentials != "") != a.endpoint.User() {
				t.Errorf("endpoint %d was asked with credentials %q", a.endpoint, a.credentials)
			}
		}
	})
}

func TestPagesOfUserDataHaveTheirOwnEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		ctx, at := as(t, "alice"), time.Now()
		for range 2 {
			trades := []queries.Trades{{}, {Limit: 10}, {MarketID: "m"}, {From: at}, {To: at}, {Page: "p"}}
			records := []queries.History{{}, {Limit: 10}, {Kinds: []market.HistoryKind{market.HistoryFee}},
				{Kinds: []market.HistoryKind{market.HistoryFee, market.HistoryTrade}}, {From: at}, {To: at}, {Page: "p"}}
			for _, q := range trades {
				want := fmt.Sprint(q.From.UTC(), q.To.UTC(), q.Limit, q.Page)
				if r, err := readOne(ctx, c.Trades(), q.Key(wallet)); err != nil || r.Value.Next != want || r.Value.Trades[0].MarketID != q.MarketID {
					t.Errorf("%+v: %+v, %v", q, r.Value, err)
				}
			}
			for _, q := range records {
				want := fmt.Sprint(q.Kinds, q.From.UTC(), q.To.UTC(), q.Limit, q.Page)
				if r, err := readOne(ctx, c.Records(), q.Key(wallet)); err != nil || r.Value.Next != want {
					t.Errorf("%+v: %+v, %v", q, r.Value, err)
				}
			}
			at = at.In(time.FixedZone("x", 3600))
		}
		if n := len(v.calls()); n != 6+7 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestFreshReads: a read that wants what is true now is answered neither by what is remembered nor by a call that left before.
func TestFreshReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{latency: time.Second}
		c := open(t, v)
		ctx, q := as(t, "alice"), queries.Trades{Limit: 10}
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
		read(reqctx.WithFresh(ctx)) // the first call is under way
		read(ctx)                   // and joins the newer one
		wg.Wait()
		if n := len(v.calls()); n != 2 {
			t.Errorf("%d calls, want two", n)
		}
		read(ctx)
		read(reqctx.WithFresh(ctx)) // the answer is remembered
		wg.Wait()
		if n := len(v.calls()); n != 3 {
			t.Errorf("%d calls, want three", n)
		}
	})
}

// Nothing that the cache holds as a key, cached or on its way, lets anybody read a credential.
func TestKeysHoldNoCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &venue{}
		c := open(t, v)
		const secret = "v3ry-s3cr3t"
		ctx := as(t, secret)
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
		synctest.Wait() // for what is refreshed behind the answers
		v.gate = make(chan struct{})
		for range kinds {
			go readEverything()
		}
		synctest.Wait()

		walked := 0
		printed := fmt.Sprintf("%+v", c)
		for _, keys := range keysOf(c) {
			walked += keys.Len()
			printed += fmt.Sprintf("%+v %#v %x", keys, keys, keys)
		}
		for _, field := range []string{"balances", "positions", "orders", "trades", "records"} {
			routes := reflect.ValueOf(c).Elem().FieldByName(field).Elem().FieldByName("routes")
			flights := routes.Index(0).Elem().FieldByName("flights")
			walked += flights.Len()
			for _, key := range flights.MapKeys() {
				printed += fmt.Sprintf("%+v %#v", key, key)
			}
			printed += fmt.Sprintf("%+v", flights)
		}
		if walked < 15 {
			t.Fatalf("walked over %d keys only", walked)
		}
		wire := reqctx.CredentialsFrom(ctx).Wire()
		for _, form := range []string{secret, wire, hex.EncodeToString([]byte(secret)), base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprint([]byte(secret)), "phrase"} {
			if strings.Contains(printed, strings.Trim(form, "[]")) {
				t.Errorf("a credential is to be read as %s", form)
			}
		}
	})
}

// keysOf returns the keys of all that is kept, as lists.
func keysOf(c *Cache) (out []reflect.Value) {
	add := func(lists ...any) {
		for _, x := range lists {
			out = append(out, reflect.ValueOf(x))
		}
	}
	add(c.refs.lru.Keys(), c.prices.entries.keys(), c.prices.absent.keys())
	add(c.spreads.entries.keys(), c.spreads.absent.keys(), c.books.entries.keys(), c.books.absent.keys(), c.histories.entries.keys(), c.histories.absent.keys())
	add(c.markets.entries.keys(), c.markets.absent.keys(), c.events.entries.keys(), c.events.absent.keys(), c.searches.entries.keys(), c.searches.absent.keys())
	add(c.balances.entries.keys(), c.balances.absent.keys(), c.positions.entries.keys(), c.positions.absent.keys(), c.orders.entries.keys(), c.orders.absent.keys())
	add(c.trades.entries.keys(), c.trades.absent.keys(), c.records.entries.keys(), c.records.absent.keys())
	return out
}

// The part of a key that separates callers is a keyed hash: the same for the same caller, different in each process, and
// of no use to who wants to test a guess.
func TestScope(t *testing.T) {
	a, b := newScope(nil), newScope(nil)
	ctx := as(t, "alice")
	if a.of(ctx, wallet) != a.of(as(t, "alice"), wallet) {
		t.Error("equal credentials have different keys")
	}
	if a.of(ctx, wallet) == b.of(ctx, wallet) {
		t.Error("two processes have the same keys")
	}
	seen := map[[32]byte]string{}
	for _, secret := range []string{"", "alice", "bob"} {
		for _, address := range []market.Address{wallet, "0x2222222222222222222222222222222222222222"} {
			key := a.of(as(t, secret), address)
			if other, ok := seen[key.caller]; ok || key.address != address {
				t.Errorf("%s of %q is %s", address, secret, other)
			}
			seen[key.caller] = secret + string(address)
		}
	}
}
