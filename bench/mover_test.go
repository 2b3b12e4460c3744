package main

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oddsgraph/internal/demo"
)

func TestJudge(t *testing.T) {
	start := time.Now()
	at := func(milliseconds int) time.Time { return start.Add(time.Duration(milliseconds) * time.Millisecond) }
	for name, test := range map[string]struct {
		answer string
		behind int // in milliseconds
		err    string
	}{
		"present price":                   {`{"tokenPrices":[{"tokenId":"A","price":"0.52"}]}`, 0, ""},
		"previous price":                  {`{"tokenPrices":[{"tokenId":"A","price":"0.5100"}]}`, 300, ""},
		"price in a nested object":        {`{"user":{"token":{"tokenId":"A","price":{"price":"0.51"}}}}`, 300, ""},
		"the oldest price counts":         {`[{"tokenId":"A","price":"0.52"},{"tokenId":"A","price":"0.51"}]`, 300, ""},
		"price that is too old":           {`{"tokenId":"A","price":"0.5"}`, 1600, "behind the venue"},
		"price that the token never had":  {`{"tokenId":"A","price":"0.53"}`, 0, "its latest prices"},
		"token whose price does not move": {`{"tokenId":"B","price":"0.99"}`, 0, ""},
		"no price":                        {`{"tokenId":"A","price":null}`, 0, ""},
		"book around the price":           {`{"tokenId":"A","price":"0.52","orderbook":{"bids":[{"price":"0.51"},{"price":"0.49"}],"asks":[{"price":"0.53"}]}}`, 0, ""},
		"book far from the price":         {`{"tokenId":"A","price":"0.52","orderbook":{"bids":[{"price":"0.31"}],"asks":[{"price":"0.33"}]}}`, 0, "best prices"},
		"book with unordered levels":      {`{"tokenId":"A","price":"0.52","orderbook":{"bids":[{"price":"0.50"},{"price":"0.51"}],"asks":[{"price":"0.53"}]}}`, 0, "not in order"},
		"book without bids":               {`{"tokenId":"A","price":"0.52","orderbook":{"bids":[],"asks":[{"price":"0.53"}]}}`, 0, "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mover{patience: 1500 * time.Millisecond, past: map[string]*past{"A": {prices: []int{5000, 5100, 5200}, sent: []time.Time{{}, at(-1600), at(-300)}, spread: 400}}}
			err := m.judge([]byte(`{"data":`+test.answer+`}`), start)
			if err == nil != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("the error is %v, want %q", err, test.err)
			}
			if got, want := m.begin(true), time.Duration(test.behind)*time.Millisecond; err == nil && got != want {
				t.Errorf("the answer is %v behind the venue, want %v", got, want)
			}
			if err := m.judge([]byte(`{"data":`+test.answer+`}`), start); err != nil {
				t.Errorf("a lenient mover refuses the answer: %v", err)
			}
			if got := m.begin(false); (got == time.Hour) != (test.err != "") {
				t.Errorf("a lenient mover records the age %v, want an hour only for a wrong answer", got)
			}
		})
	}
	if err := new(mover).judge([]byte(`{"errors":[{}]}`), start); err == nil {
		t.Error("judge accepts a response with errors")
	}
}

func TestMoverMovesTheVenue(t *testing.T) {
	s := httptest.NewServer(demo.New(demo.Config{Markets: 200, Control: true}))
	defer s.Close()
	v := venue{s.URL}
	l, err := v.list(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	tokens := l.deep[0].tokens()
	m, err := v.newMover(t.Context(), s.Listener.Addr().String(), l, tokens[1:], 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.conn.close()
	if len(m.places) != 1 {
		t.Fatalf("the mover has %d places, want 1 for the two tokens of a market", len(m.places))
	}
	for range 2 * pricesInTurn {
		if err := m.move(&m.places[0]); err != nil {
			t.Fatal(err)
		}
		now, err := v.prices(t.Context(), tokens)
		if err != nil {
			t.Fatal(err)
		}
		for token, price := range now {
			answer := fmt.Appendf(nil, `{"data":{"tokenId":%q,"price":%q}}`, token, price)
			if err := m.judge(answer, time.Now()); err != nil {
				t.Fatal(err)
			}
			if behind := m.begin(false); behind > 0 {
				t.Fatalf("the present price is %v behind the venue, want 0s", behind)
			}
		}
	}
}
