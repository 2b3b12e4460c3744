package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// changesPerSecond is how often the price of each token moves.
	changesPerSecond = 10
	// walk is how many different prices a token takes in turn, so that an answer tells how old it is.
	walk = 16
	// remembered is how many prices of each token are.
	remembered = 10 * walk
)

// mover moves the prices of tokens, each ten times a second, evenly spread over time, and remembers when it did. The book
// moves with the price.
type mover struct {
	conn   *connection
	places []place
	// patience is how far an answer may be behind the venue.
	patience time.Duration

	// mu protects the rest.
	mu   sync.Mutex
	past map[string]*past
	// lenient lets wrong answers pass, and only remembers them.
	lenient bool
	// behind is how far the answers that were judged were behind.
	behind []time.Duration
}

// place is what has one price: a token, or the two of a market with two, of which the other's is what is left of 1.
type place struct {
	token, other string
	first        int // in ticks
	tick, ticks  int // of 1/10,000 and in 1
	step         int
}

// past are the latest prices of a token, the last one last. A price was the token's until the next one was sent.
type past struct {
	prices []int // in 1/10,000
	sent   []time.Time
	spread int // how far the best prices may be from the price
}

// moves returns a mover of tokens, those left out whose market is not open.
func (v venue) moves(ctx context.Context, address string, l *listing, tokens []string, patience time.Duration) (*mover, error) {
	m := &mover{patience: patience, past: make(map[string]*past)}
	for _, listed := range l.open {
		for i, t := range listed.Outcomes {
			if !slices.Contains(tokens, t.TokenID) && !(len(listed.Outcomes) == 2 && slices.Contains(tokens, listed.Outcomes[1-i].TokenID)) {
				continue
			}
			now, err := fixed(t.Price.String())
			if err != nil {
				return nil, err
			}
			tick, err := fixed(listed.TickSize.String())
			if err != nil {
				return nil, err
			}
			p := place{token: t.TokenID, tick: tick, ticks: 10_000 / tick}
			m.past[t.TokenID] = &past{prices: []int{now}, sent: []time.Time{{}}, spread: 4 * tick}
			if len(listed.Outcomes) == 2 {
				if p.other = listed.Outcomes[1].TokenID; i == 1 {
					continue // it moves with the first
				}
			}
			p.first = min(max(now/tick-walk/2, 1), p.ticks-walk)
			m.places = append(m.places, p)
		}
	}
	var err error
	m.conn, err = dial(ctx, address)
	return m, err
}

// fixed returns a price in 1/10,000.
func fixed(literal string) (int, error) {
	f, err := strconv.ParseFloat(literal, 64)
	return int(math.Round(f * 10_000)), err
}

// start moves the prices until the function is called, or ctx ends. Calling it again does nothing more.
func (m *mover) start(ctx context.Context) (still func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// run moves the prices until ctx ends.
func (m *mover) run(ctx context.Context) error {
	defer m.conn.close()
	if len(m.places) == 0 {
		return nil
	}
	start := time.Now()
	for n := 0; ; n++ {
		due := start.Add(time.Duration(n) * time.Second / changesPerSecond / time.Duration(len(m.places)))
		if wait := time.Until(due); wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := m.move(&m.places[n%len(m.places)]); err != nil {
			return err
		}
	}
}

func (m *mover) move(p *place) error {
	p.step = (p.step + 1) % walk
	price := (p.first + p.step) * p.tick
	m.note(p.token, price)
	if p.other != "" {
		m.note(p.other, 10_000-price)
	}
	_, err := m.conn.ask(wire("/__control/price", setPrice(p.token, price), ""))
	return err
}

// setPrice is what the venue is told to move a price, in 1/10,000.
func setPrice(token string, price int) []byte {
	return fmt.Appendf(nil, `{"tokenId":%q,"price":%d.%04d}`, token, price/10_000, price%10_000)
}

func (m *mover) note(token string, price int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.past[token]
	p.prices, p.sent = append(p.prices, price), append(p.sent, time.Now())
	if extra := len(p.prices) - remembered; extra > 0 {
		p.prices, p.sent = slices.Delete(p.prices, 0, extra), slices.Delete(p.sent, 0, extra)
	}
}

// judge fails on an answer with a price or book that the venue did not have lately, and remembers how far behind it was.
func (m *mover) judge(answer []byte, sent, _ time.Time) error {
	var data any
	if err := readData(answer, &data); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	behind := time.Duration(0)
	err := eachQuote(data, func(q quote) error {
		p := m.past[q.token]
		if p == nil {
			return nil // it does not move
		}
		i := len(p.prices) - 1
		for i >= 0 && p.prices[i] != q.price {
			i-- // the price before the first move may come again
		}
		if i < 0 {
			return fmt.Errorf("token %s has the price %d/10000, lately it had %v", q.token, q.price, p.prices[max(0, len(p.prices)-walk):])
		}
		if i+1 < len(p.prices) {
			behind = max(behind, sent.Sub(p.sent[i+1]))
		}
		if q.hasBook && !slices.ContainsFunc(p.prices, func(price int) bool {
			return q.bid <= price && price <= q.ask && q.ask-q.bid <= 2*p.spread
		}) {
			return fmt.Errorf("token %s has the best prices %d and %d/10000, lately its price was %v", q.token, q.bid, q.ask, p.prices[max(0, len(p.prices)-walk):])
		}
		return nil
	})
	if err == nil && behind > m.patience {
		err = fmt.Errorf("the answer is %v behind the venue", behind)
	}
	if err != nil && m.lenient {
		behind, err = time.Hour, nil
	}
	m.behind = append(m.behind, behind)
	return err
}

// begin says how what follows is judged, and returns how far the answers before were behind at worst; 0 where there were
// none.
func (m *mover) begin(lenient bool) (behind time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.behind) > 0 {
		behind = slices.Max(m.behind)
	}
	m.lenient, m.behind = lenient, nil
	return behind
}

// quote is a token's price in an answer, with the best prices of its book where that is shown, in 1/10,000.
type quote struct {
	token    string
	price    int
	hasBook  bool
	bid, ask int
}

// eachQuote calls f for each token in an answer that has a price, until f fails.
func eachQuote(data any, f func(quote) error) error {
	switch data := data.(type) {
	case []any:
		for _, v := range data {
			if err := eachQuote(v, f); err != nil {
				return err
			}
		}
	case object:
		q, ok, err := readQuote(data)
		if ok && err == nil {
			err = f(q)
		}
		if err != nil {
			return err
		}
		for _, v := range data {
			if err := eachQuote(v, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func readQuote(o object) (q quote, ok bool, err error) {
	q.token, _ = o["tokenId"].(string)
	literal, ok := o["price"].(string)
	if inner, is := o["price"].(object); is {
		literal, ok = inner["price"].(string)
	}
	if q.token == "" || !ok {
		return q, false, nil
	}
	if q.price, err = fixed(literal); err != nil {
		return q, false, err
	}
	book, ok := o["orderbook"].(object)
	if !ok {
		return q, true, nil
	}
	q.hasBook = true
	var errs [2]error
	q.bid, errs[0] = best(book["bids"], -1)
	q.ask, errs[1] = best(book["asks"], 1)
	return q, true, errors.Join(errs[:]...)
}

// best returns the first price of the levels of a side, which have to be in order.
func best(side any, sign int) (int, error) {
	b, err := json.Marshal(side)
	if err != nil {
		return 0, err
	}
	var levels []struct{ Price string }
	if err := json.Unmarshal(b, &levels); err != nil {
		return 0, err
	}
	prices := make([]int, len(levels))
	for i, l := range levels {
		if prices[i], err = fixed(l.Price); err != nil {
			return 0, err
		}
		if i > 0 && sign*(prices[i]-prices[i-1]) <= 0 {
			return 0, errors.New("the levels of a book are not in order")
		}
	}
	if len(prices) == 0 {
		return 0, errors.New("one side of a book is empty")
	}
	return prices[0], nil
}
