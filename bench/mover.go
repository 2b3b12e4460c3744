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
	// changesPerSecond is the number of price changes of each token per second.
	changesPerSecond = 10
	// pricesInTurn is the number of different prices that a token has in turn. The price in a response shows how old the response is.
	pricesInTurn = 16
	// maxRemembered is the number of prices that a mover remembers for each token.
	maxRemembered = 10 * pricesInTurn
)

// mover moves the price of each token ten times per second and remembers the prices and times. The moves are evenly spread over
// time. The venue moves the book of a token with its price.
type mover struct {
	conn   *connection
	places []place
	// patience is the maximum age of the prices in a response.
	patience time.Duration

	// mu protects the fields below.
	mu   sync.Mutex
	past map[string]*past
	// lenient makes judge accept wrong responses and record them in behind as one hour old.
	lenient bool
	// behind has the age of each response since the last call of begin.
	behind []time.Duration
}

// place is a token, or the two tokens of a binary market. The prices of these two tokens add up to 1.
type place struct {
	token, other string
	first        int // lowest price of the token, in ticks
	tick, ticks  int // size of a tick in 1/10,000, and number of ticks in 1
	step         int
}

// past holds the latest prices of a token in the order of time, with the times when they were sent to the venue. A price is valid
// until the next price is sent.
type past struct {
	prices []int // in 1/10,000
	sent   []time.Time
	spread int // maximum distance of the best bid and ask from the price, in 1/10,000
}

// newMover returns a mover for the tokens. It leaves out tokens whose market is not open.
func (v venue) newMover(ctx context.Context, address string, l *listing, tokens []string, patience time.Duration) (*mover, error) {
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
					continue // this token moves with the first token
				}
			}
			p.first = min(max(now/tick-pricesInTurn/2, 1), p.ticks-pricesInTurn)
			m.places = append(m.places, p)
		}
	}
	var err error
	m.conn, err = dial(ctx, address)
	return m, err
}

// fixed converts a decimal literal to an integer in units of 1/10,000.
func fixed(literal string) (int, error) {
	f, err := strconv.ParseFloat(literal, 64)
	return int(math.Round(f * 10_000)), err
}

// start starts to move the prices. They move until ctx ends or the returned function is called. The returned function waits until
// the prices have stopped, and may be called several times.
func (m *mover) start(ctx context.Context) (stopMoving func() error) {
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
	p.step = (p.step + 1) % pricesInTurn
	price := (p.first + p.step) * p.tick
	m.note(p.token, price)
	if p.other != "" {
		m.note(p.other, 10_000-price)
	}
	_, err := m.conn.ask(wire("/__control/price", setPrice(p.token, price), ""))
	return err
}

// setPrice returns the body of the control request that sets a price. The price is in 1/10,000.
func setPrice(token string, price int) []byte {
	return fmt.Appendf(nil, `{"tokenId":%q,"price":%d.%04d}`, token, price/10_000, price%10_000)
}

func (m *mover) note(token string, price int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.past[token]
	p.prices, p.sent = append(p.prices, price), append(p.sent, time.Now())
	if extra := len(p.prices) - maxRemembered; extra > 0 {
		p.prices, p.sent = slices.Delete(p.prices, 0, extra), slices.Delete(p.sent, 0, extra)
	}
}

// judge checks a response and records its age. It fails if the response is older than m.patience, or has a price or book that the
// venue did not have recently.
func (m *mover) judge(answer []byte, sent time.Time) error {
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
			return nil // the price of this token does not move
		}
		i := len(p.prices) - 1
		for i >= 0 && p.prices[i] != q.price {
			i-- // backwards, because prices repeat and the latest time counts
		}
		if i < 0 {
			return fmt.Errorf("token %s has the price %d/10000 in the answer; its latest prices at the venue were %v", q.token, q.price, p.prices[max(0, len(p.prices)-pricesInTurn):])
		}
		if i+1 < len(p.prices) {
			behind = max(behind, sent.Sub(p.sent[i+1]))
		}
		if q.hasBook && !slices.ContainsFunc(p.prices, func(price int) bool {
			return q.bid <= price && price <= q.ask && q.ask-q.bid <= 2*p.spread
		}) {
			return fmt.Errorf("token %s has the best prices %d and %d/10000 in the answer; its latest prices at the venue were %v", q.token, q.bid, q.ask, p.prices[max(0, len(p.prices)-pricesInTurn):])
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

// begin sets how judge treats the responses from now on. It returns the maximum age of the responses since the last call of
// begin, or 0 if there were none.
func (m *mover) begin(lenient bool) (behind time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.behind) > 0 {
		behind = slices.Max(m.behind)
	}
	m.lenient, m.behind = lenient, nil
	return behind
}

// quote is a token's price in a response, in 1/10,000. If the response has the token's book, bid and ask are its best prices.
type quote struct {
	token    string
	price    int
	hasBook  bool
	bid, ask int
}

// eachQuote calls f for each token with a price in the data of a response, until f fails.
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
	if inner, isObject := o["price"].(object); isObject {
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

// best returns the first price of one side of a book. If sign is 1, the prices must ascend. If sign is -1, they must descend.
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
