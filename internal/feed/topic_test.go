package feed

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"oddsgraph/internal/market"
)

// A script is what happens to a topic that a reader watches, a line each:
//
//	up | down                     the connection
//	snap A41 .50x10 | .60x10      a snapshot of a book: epoch A, number 41; "-" numbers nothing, "@7" adds a time
//	delta A42<41 b.50x0 s.60x5    a change of a book, here with the number before it
//	price A7 .65 .64/.66          a price, perhaps with the best prices
//	tape A3 t1 t2 | trade A4 t3   the latest trades, and one more
//	change A2 STATUS              a change of a market
//	acct A9 o1 o2 | p1x5 | 100    an account: orders, positions, balance; "?" is unknown
//	order A10 o1 FILLED | pos A11 p1x0 | bal A12 90 | fill A13 t1
//	beat A42                      a heartbeat; "beat 42" names no epoch
//	wait 2s
//
// and what is to be seen, of which every line must hold:
//
//	live A42 r0 .50x10 | .60x10   the state, the number of resyncs and the value
//	stale A42 r0 ...
//	unknown
//	took [gap] t1 t2              what had queued
//	asked resync reconnect        all that was asked upstream since it was last looked at
//	read                          the market was given up for reading
//
// Over an origin there are also
//
//	rest A41@7 .50x10 | .60x10    the answer to the read that is under way; "rest fails", "rest none", "rest A7@7 .65"
//	reading 1                     the number of reads under way
//	from REST                     the source of the state
//
// After each line the reader must have been told of every new state, and the sink must have what is live, and nothing
// fresh that is not.
type script struct {
	name, channel, lines string
}

func TestTopics(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.channel+"/"+s.name, func(t *testing.T) { s.run(t, nil) })
	}
}

// run plays a script, over a feed that reads from an origin if there is one.
func (s *script) run(t *testing.T, o *origin) {
	synctest.Test(t, func(t *testing.T) {
		p := &player{t: t, key: market.Topic{Channel: market.Channel(s.channel), ID: "T"}, origin: o}
		p.testFeed = newTestFeed(t, func(c *Config) {
			if o != nil {
				c.Origin = o
			}
		})
		p.reader, p.w = p.watch(t, p.key)
		defer p.reader.Close()
		p.up.take()
		for n, line := range strings.Split(strings.TrimSpace(s.lines), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				p.at = fmt.Sprintf("line %d, %q", n+1, line)
				p.play(line)
				p.check()
			}
		}
		if left := p.testFeed.up.take(); len(left) > 0 {
			t.Errorf("at the end the upstream had been asked %q", left)
		}
		p.items()
		if !p.pending.empty() {
			t.Errorf("at the end there was %+v to take", p.pending)
		}
	})
}

type player struct {
	*testFeed
	t      *testing.T
	key    market.Topic
	reader *Reader
	w      *Watch
	at     string
	last   State
	// pending is what was taken and not yet looked for.
	pending Items
	origin  *origin
}

func (p *player) items() {
	_, items, err := p.w.Take()
	if err != nil {
		p.t.Fatalf("%s: the watch has ended: %v", p.at, err)
	}
	p.pending.add(items)
}

// numbers reads "A42<41@7".
func numbers(s string) (epoch string, seq, prev uint64, at time.Time) {
	s, after, timed := strings.Cut(s, "@")
	if timed {
		n, _ := strconv.Atoi(after)
		at = time.Unix(int64(n), 0)
	}
	if s == "-" {
		return "", 0, 0, at
	}
	s, before, _ := strings.Cut(s, "<")
	prev, _ = strconv.ParseUint(before, 10, 64)
	epoch = strings.TrimRight(s, "0123456789")
	seq, err := strconv.ParseUint(strings.TrimPrefix(s, epoch), 10, 64)
	if err != nil {
		panic("a number " + s)
	}
	return epoch, seq, prev, at
}

func (p *player) play(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	number, value, _ := strings.Cut(rest, " ")
	value = strings.TrimSpace(value)
	switch verb {
	case "up":
		p.Up(rest, []market.Topic{p.key})
	case "ack":
		p.Acknowledged([]market.Topic{p.key})
	case "down":
		p.Down([]market.Topic{p.key}, nil)
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		time.Sleep(d)
		synctest.Wait()
	case "beat":
		epoch, seq, _, _ := numbers(number)
		p.Heartbeat(epoch, map[market.Topic]uint64{p.key: seq})
	case "snap", "delta", "price", "tape", "trade", "change", "acct", "order", "pos", "bal", "fill":
		m := messageOf(verb, value)
		m.Topic, m.ReceivedAt = p.key, time.Now()
		m.Epoch, m.Seq, m.PrevSeq, m.Time = numbers(number)
		p.Message(m)
	case "live", "stale", "unknown":
		s, err := p.w.State()
		got := fmt.Sprintf("%s%d r%d %s", s.Epoch, s.Seq, s.Resyncs, show(&s))
		switch {
		case err != nil:
			got = "ended: " + err.Error()
		case !s.Known && !s.Live:
			got = "unknown"
		case s.Live:
			got = "live " + got
		default:
			got = "stale " + got
		}
		if got = strings.Join(strings.Fields(got), " "); got != line {
			p.t.Fatalf("%s: the state is %q", p.at, got)
		}
	case "took":
		p.items()
		var got []string
		if p.pending.Gap {
			got = append(got, "gap")
		}
		for _, x := range p.pending.Trades {
			got = append(got, x.TradeID)
		}
		for _, x := range p.pending.Changes {
			got = append(got, x.Kind)
		}
		if strings.Join(got, " ") != rest {
			p.t.Fatalf("%s: took %q", p.at, got)
		}
		p.pending = Items{}
	case "asked":
		var got []string
		for _, a := range p.testFeed.up.take() {
			got = append(got, strings.Fields(a)[0])
		}
		if strings.Join(got, " ") != rest {
			p.t.Fatalf("%s: the upstream was asked %q", p.at, got)
		}
	case "read":
		if n := len(p.sink.takeMarkets()); n == 0 {
			p.t.Fatalf("%s: the market was not given up for reading", p.at)
		}
	case "rest":
		p.answer(number, value)
	case "reading":
		synctest.Wait()
		if got := fmt.Sprint(p.origin.under()); got != rest {
			p.t.Fatalf("%s: %s reads are under way", p.at, got)
		}
	case "from":
		if s, _ := p.w.State(); string(s.Meta.Source) != rest || p.sink.of(p.key).meta.Source != s.Meta.Source {
			p.t.Fatalf("%s: the source is %s", p.at, s.Meta.Source)
		}
	default:
		p.t.Fatalf("what is %q?", line)
	}
}

func messageOf(verb, value string) *market.Message {
	m := &market.Message{}
	switch verb {
	case "snap":
		m.Kind, m.Book = market.MessageBookSnapshot, parseBook("", value)
	case "delta":
		m = deltaMessage("T", "", 0, value)
	case "price":
		m.Kind = market.MessagePrice
		price, spread, _ := strings.Cut(value, " ")
		m.Price = &market.Price{TokenID: "T", Price: dec(price)}
		if bid, ask, ok := strings.Cut(spread, "/"); ok {
			m.Spread = &market.Spread{TokenID: "T", BestBid: decp(bid), BestAsk: decp(ask)}
		}
	case "tape", "trade", "fill":
		kind := map[string]market.MessageKind{"tape": market.MessageTradesSnapshot, "trade": market.MessageTrade, "fill": market.MessageFill}
		m = tradesMessage("T", "", 0, kind[verb], strings.Fields(value)...)
	case "change":
		m.Kind, m.Market = market.MessageMarket, &market.MarketChange{Kind: value}
	case "acct":
		part := strings.Split(value, "|")
		m.Kind = market.MessageUserSnapshot
		for i := range part {
			part[i] = strings.TrimSpace(part[i])
		}
		if part[0] != "?" {
			m.Orders = []market.Order{}
			for _, id := range strings.Fields(part[0]) {
				id, status, ok := strings.Cut(id, "=")
				if !ok {
					status = "OPEN"
				}
				m.Orders = append(m.Orders, market.Order{OrderID: id, Status: market.OrderStatus(status)})
			}
		}
		if part[1] != "?" {
			m.Positions = []market.Position{}
			for _, l := range strings.Fields(part[1]) {
				m.Positions = append(m.Positions, positionOf(l))
			}
		}
		if part[2] != "?" {
			m.Balance = &market.Balance{CashBalance: decp(part[2])}
		}
	case "order":
		id, status, _ := strings.Cut(value, " ")
		m.Kind, m.Orders = market.MessageOrder, []market.Order{{OrderID: id, Status: market.OrderStatus(status)}}
	case "pos":
		m.Kind, m.Positions = market.MessagePosition, []market.Position{positionOf(value)}
	case "bal":
		m.Kind, m.Balance = market.MessageBalance, &market.Balance{CashBalance: decp(value)}
	}
	return m
}

func positionOf(s string) market.Position {
	id, size, _ := strings.Cut(s, "x")
	return market.Position{MarketID: id, Outcome: "YES", Size: dec(size)}
}

func show(s *State) string {
	switch {
	case s.Book != nil:
		return showBook(s.Book)
	case s.Price != nil && s.Spread != nil:
		return text(s.Price.Price) + " " + text(*s.Spread.BestBid) + "/" + text(*s.Spread.BestAsk)
	case s.Price != nil:
		return text(s.Price.Price)
	case s.Trades != nil:
		return showTrades(s.Trades)
	case s.Account != nil:
		return showAccount(s.Account)
	}
	return ""
}

func showAccount(a *Account) string {
	orders, positions, balance := "?", "?", "?"
	if a.Orders != nil {
		orders = ""
		for _, o := range a.Orders {
			orders += o.OrderID + " "
		}
	}
	if a.Positions != nil {
		positions = ""
		for _, x := range a.Positions {
			positions += x.MarketID + "x" + x.Size.String() + " "
		}
	}
	if a.Balance != nil {
		balance = a.Balance.CashBalance.String()
	}
	return orders + " | " + positions + " | " + balance
}

// check compares what reader and sink know with the state.
func (p *player) check() {
	s, err := p.w.State()
	if err != nil {
		return
	}
	told := slices.Contains(p.reader.Take(), p.w)
	if !told && (s.Live != p.last.Live || s.Known && (s.Seq != p.last.Seq || s.Epoch != p.last.Epoch) || s.Resyncs != p.last.Resyncs || show(&s) != show(&p.last)) {
		p.t.Fatalf("%s: the reader was not told that %+v has become %+v", p.at, p.last, s)
	}
	p.last = s
	if s.Meta.Stale == s.Live {
		if s.Known {
			p.t.Fatalf("%s: Live is %t and stale is %t", p.at, s.Live, s.Meta.Stale)
		}
	}
	if p.key.Channel == market.ChannelTrades || p.key.Channel == market.ChannelMarket {
		return
	}
	k := p.sink.of(p.key)
	if k.fresh() != s.Live {
		p.t.Fatalf("%s: Live is %t, what queries read is fresh: %t", p.at, s.Live, k.fresh())
	}
	if !s.Live {
		if p.sink.spread("T").fresh() {
			p.t.Fatalf("%s: the spread is fresh without the price", p.at)
		}
		return
	}
	if got := (&State{Price: k.price, Spread: s.Spread, Book: k.book, Account: k.account}); show(got) != show(&s) {
		p.t.Fatalf("%s: queries read %s instead of %s", p.at, show(got), show(&s))
	}
	if k := p.sink.spread("T"); (s.Spread != nil) != k.fresh() || s.Spread != nil && k.spread != s.Spread {
		p.t.Fatalf("%s: queries read another spread", p.at)
	}
	if s.Book != nil && (s.Book.Seq != s.Seq || s.Book.Epoch != s.Epoch || s.Book.TokenID != "T") {
		p.t.Fatalf("%s: the book is of %s %s%d, the state of %s%d", p.at, s.Book.TokenID, s.Book.Epoch, s.Book.Seq, s.Epoch, s.Seq)
	}
}

var scripts = []script{
	// Books.
	{"follows", "orderbook", `
		unknown
		up
		unknown
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10
		delta A42 b.50x20 b.49x5 s.60x0 s.61x1
		live A42 r0 .50x20 .49x5 | .61x1
		delta A43<42 b.49x0
		live A43 r0 .50x20 | .61x1`},
	{"nothing is heard while it is down", "orderbook", `
		snap A41 .50x10 | .60x10
		unknown
		up
		snap A41 .50x10 | .60x10
		down
		stale A41 r0 .50x10 | .60x10
		delta A42 b.50x20
		snap A43 .50x30 | .60x10
		beat A50
		stale A41 r0 .50x10 | .60x10
		wait 1m
		stale A41 r0 .50x10 | .60x10`},
	{"duplicates", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.50x20
		delta A42 b.50x99
		delta A41 b.50x98
		snap A42 .50x97 | .60x10
		live A42 r0 .50x20 | .60x10`},
	{"gap", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		stale A41 r0 .50x10 | .60x10
		asked resync
		delta A44 b.49x5
		stale A41 r0 .50x10 | .60x10
		snap A43 .50x30 .48x1 | .60x10
		live A44 r1 .50x30 .49x5 .48x1 | .60x10`},
	{"the change that showed the gap is not lost with a snapshot from before it", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		snap A42 .50x10 .48x1 | .60x10
		live A43 r1 .50x30 .48x1 | .60x10`},
	{"another previous number", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42<40 b.50x30
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap A42 .50x40 | .60x10
		live A42 r1 .50x40 | .60x10`},
	{"a snapshot with the known number heals", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat A42
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"a restart without a close", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta B1 b.50x30
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap B1 .40x1 | .60x10
		live B1 r1 .40x1 | .60x10
		delta A42 b.50x99
		snap A43 .50x99 | .60x10
		beat A44
		live B1 r1 .40x1 | .60x10
		delta B2 b.40x2
		live B2 r1 .40x2 | .60x10`},
	{"a late snapshot of the epoch before does not go live", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta B2 b.50x30
		asked resync
		snap A42 .50x11 | .60x10
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap B2 .50x30 | .60x10
		live B2 r1 .50x30 | .60x10`},
	{"a restart with a close counts from anew", "orderbook", `
		up A
		snap A410 .50x10 | .60x10
		down
		up B
		stale A410 r0 .50x10 | .60x10
		delta B4 b.40x7
		snap B3 .40x1 | .60x10
		live B4 r1 .40x7 | .60x10`},
	{"after a reconnect the book is replaced", "orderbook", `
		up
		snap A41 .50x10 .45x3 | .60x10 .70x9
		down
		up
		snap A44 .50x10 | .60x10
		live A44 r1 .50x10 | .60x10`},
	{"up twice without down", "orderbook", `
		up
		snap A41 .50x10 .45x3 | .60x10
		up
		stale A41 r0 .50x10 .45x3 | .60x10
		delta A42 b.50x11
		snap A41 .50x10 | .60x10
		live A42 r1 .50x11 | .60x10`},
	{"what waited for a snapshot is forgotten by the next session", "orderbook", `
		up
		delta A50 b.50x50
		up
		snap B1 .50x10 | .60x10
		live B1 r0 .50x10 | .60x10`},
	{"an epoch may return in another session", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		snap B1 .50x20 | .60x10
		snap A42 .50x99 | .60x10
		live B1 r1 .50x20 | .60x10
		down
		up
		snap A43 .50x30 | .60x10
		live A43 r2 .50x30 | .60x10`},
	{"down twice", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		down
		stale A41 r0 .50x10 | .60x10
		up
		snap A41 .50x10 | .60x10
		live A41 r1 .50x10 | .60x10`},
	{"down before the first snapshot", "orderbook", `
		up
		down
		unknown
		wait 1m
		up
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"an old snapshot in a gap", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.50x20
		delta A44 b.50x40
		asked resync
		snap A40 .50x1 | .60x10
		snap A41 .50x10 | .60x10
		stale A42 r0 .50x20 | .60x10
		snap A44 .50x40 | .60x10
		live A44 r1 .50x40 | .60x10`},
	{"an old snapshot of the same epoch after a reconnect is asked for again", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		down
		up
		snap A40 .50x1 | .60x10
		stale A41 r0 .50x10 | .60x10
		wait 2s
		asked resync
		snap A40 .50x1 | .60x10
		live A40 r1 .50x1 | .60x10`},
	{"a venue without epochs counts from anew at each connection", "orderbook", `
		up
		snap 41 .50x10 | .60x10
		delta 42 b.50x11
		down
		up
		snap 1 .50x1 | .60x10
		live 1 r1 .50x1 | .60x10
		delta 2 b.50x2
		live 2 r1 .50x2 | .60x10`},
	{"a snapshot in between", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		snap A42 .50x20 | .60x10
		live A42 r0 .50x20 | .60x10
		snap A45 .50x30 | .60x10
		live A45 r1 .50x30 | .60x10
		delta A46 b.50x31
		live A46 r1 .50x31 | .60x10`},
	{"what came before the snapshot is applied after it", "orderbook", `
		up
		delta A40 b.50x1
		delta A42 b.50x20
		delta A43 b.49x3
		unknown
		snap A41 .50x10 | .60x10
		live A43 r0 .50x20 .49x3 | .60x10`},
	{"a gap in what came before the snapshot", "orderbook", `
		up
		delta A42 b.50x20
		delta A44 b.49x3
		delta A45 b.48x3
		snap A41 .50x10 | .60x10
		unknown
		asked resync
		snap A43 .50x20 .47x1 | .60x10
		live A45 r0 .50x20 .49x3 .48x3 .47x1 | .60x10`},
	{"a change that crosses the book", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.60x1
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap A42 .60x1 | .70x10
		live A42 r1 .60x1 | .70x10`},
	{"a batch crosses only at its end", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A42 b.60x1 s.60x0 s.61x2
		live A42 r0 .60x1 .50x10 | .61x2`},
	{"a snapshot that is crossed", "orderbook", `
		up
		snap A41 .60x10 | .50x10
		unknown
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"what came before the snapshot crosses it", "orderbook", `
		up
		delta A42 b.60x1
		snap A41 .50x10 | .60x10
		unknown
		asked resync
		snap A42 .60x1 | .70x10
		live A42 r0 .60x1 | .70x10`},
	{"snapshots that are crossed again and again count as failed resyncs", "orderbook", `
		up
		snap A41 .60x10 | .50x10
		snap A42 .60x10 | .50x10
		snap A43 .60x10 | .50x10
		asked resync resync reconnect resync
		unknown`},
	{"sides may be empty", "orderbook", `
		up
		snap A41 |
		live A41 r0 |
		delta A42 s.60x1
		live A42 r0 | .60x1
		delta A43 s.60x0 b.99x1
		live A43 r0 .99x1 |`},
	{"a lost last change is found by the heartbeat", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat A41
		live A41 r0 .50x10 | .60x10
		beat A42
		stale A41 r0 .50x10 | .60x10
		asked resync
		snap A42 .50x20 | .60x10
		live A42 r1 .50x20 | .60x10`},
	{"a late heartbeat", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat A40
		beat A41
		live A41 r0 .50x10 | .60x10`},
	{"a heartbeat after a restart", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat B2
		asked resync
		stale A41 r0 .50x10 | .60x10
		snap B2 .50x20 | .60x10
		live B2 r1 .50x20 | .60x10`},
	{"a heartbeat that names no epoch", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		beat 41
		live A41 r0 .50x10 | .60x10
		beat 42
		asked resync
		snap A42 .50x20 | .60x10
		live A42 r1 .50x20 | .60x10`},
	{"heartbeats do not disturb a resync", "orderbook", `
		up
		beat A41
		snap A41 .50x10 | .60x10
		delta A43 b.50x1
		asked resync
		beat A44
		beat B1
		snap A44 .50x20 | .60x10
		live A44 r1 .50x20 | .60x10`},
	{"a resync is asked for again every two seconds and then the connection is dropped", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		asked resync
		wait 1900ms
		asked
		wait 200ms
		asked resync
		wait 2s
		asked resync
		wait 2s
		asked reconnect
		down
		stale A41 r0 .50x10 | .60x10
		wait 1h
		asked
		up
		snap A50 .50x40 | .60x10
		live A50 r1 .50x40 | .60x10`},
	{"a first snapshot that is lost", "orderbook", `
		up
		wait 2s
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10
		wait 1h
		asked`},
	{"a snapshot that never comes does not cost the others their connection for ever", "orderbook", `
		up
		wait 6s
		asked resync resync reconnect
		down
		up
		wait 6s
		asked resync resync resync
		wait 6s
		asked resync resync reconnect
		down
		up
		wait 22s
		asked resync resync resync resync resync resync resync resync resync resync resync
		wait 2s
		asked reconnect
		down
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x1
		wait 6s
		asked resync resync resync reconnect`},
	{"a reconnect that is not heard of", "orderbook", `
		up
		wait 6s
		asked resync resync reconnect
		wait 2s
		asked resync
		snap A41 .50x10 | .60x10
		live A41 r0 .50x10 | .60x10`},
	{"failures that lie apart do not add up", "orderbook", `
		up
		snap A41 .50x10 | .60x10
		delta A43 b.50x30
		wait 5s
		asked resync resync resync
		snap A43 .50x30 | .60x10
		delta A45 b.50x30
		wait 5s
		asked resync resync resync
		snap A45 .50x30 | .60x10
		live A45 r2 .50x30 | .60x10`},
	{"full books without numbers", "orderbook", `
		up
		snap - .50x10 | .60x10
		live 0 r0 .50x10 | .60x10
		snap - .50x20 | .60x10
		live 0 r0 .50x20 | .60x10
		beat 7
		live 0 r0 .50x20 | .60x10
		wait 1h
		asked
		down
		up
		snap - .50x20 | .60x10
		live 0 r1 .50x20 | .60x10`},
	{"full books without numbers that are crossed for a moment", "orderbook", `
		up
		snap - .50x10 | .60x10
		snap - .60x20 | .60x10
		stale 0 r0 .50x10 | .60x10
		asked resync
		snap - .60x20 | .61x10
		live 0 r1 .60x20 | .61x10`},
	{"changes without numbers", "orderbook", `
		up
		delta -@5 b.50x5
		delta -@9 b.49x9
		delta - b.48x9
		snap -@7 .50x10 | .60x10
		live 0 r0 .50x10 .49x9 | .60x10
		delta - b.50x11
		live 0 r0 .50x11 .49x9 | .60x10
		delta - b.70x1
		asked resync
		snap - .50x12 | .60x10
		live 0 r1 .50x12 | .60x10`},

	// Prices.
	{"follows", "prices", `
		up
		price A7 .65 .64/.66
		live A7 r0 .65 .64/.66
		price A8 .66 .65/.67
		live A8 r0 .66 .65/.67`},
	{"duplicates and late ones", "prices", `
		up
		price A7 .65
		price A7 .99
		price A6 .98
		live A7 r0 .65`},
	{"a price is whole and heals a gap", "prices", `
		up
		price A7 .65
		price A9 .67
		live A9 r1 .67`},
	{"a restart", "prices", `
		up
		price A700 .65
		price B1 .66
		live B1 r1 .66
		price A701 .99
		live B1 r1 .66
		down
		up
		price C1 .67
		live C1 r2 .67`},
	{"a reconnect", "prices", `
		up
		price A7 .65
		down
		stale A7 r0 .65
		up
		stale A7 r0 .65
		price A7 .65
		live A7 r1 .65`},
	{"a price without the best prices", "prices", `
		up
		price A7 .65 .64/.66
		price A8 .66
		live A8 r0 .66
		price A9 .66 .65/.67
		live A9 r0 .66 .65/.67`},
	{"a lost last price", "prices", `
		up
		price A7 .65
		beat A8
		stale A7 r0 .65
		asked resync
		price A8 .66
		live A8 r1 .66`},
	{"a venue that sends no first price", "prices", `
		up
		wait 6s
		asked resync resync
		wait 1h
		asked
		unknown
		price A7 .65
		live A7 r0 .65
		down
		up
		wait 1h
		asked resync resync
		stale A7 r0 .65
		price A9 .66
		live A9 r1 .66`},
	{"without numbers", "prices", `
		up
		price - .65
		price - .66
		beat A3
		live 0 r0 .66`},

	// Trades.
	{"follows", "trades", `
		up
		tape A3 t1 t2
		live A3 r0 t1 t2
		took
		trade A4 t3
		took t3
		live A4 r0 t1 t2 t3
		trade A4 t3
		trade A3 t2
		took
		trade A5 t3
		took
		live A5 r0 t1 t2 t3`},
	{"a snapshot that reaches back", "trades", `
		up
		tape A3 t1 t2
		trade A6 t5
		asked resync
		stale A3 r0 t1 t2
		tape A6 t2 t3 t4 t5
		took t3 t4 t5
		live A6 r1 t1 t2 t3 t4 t5`},
	{"a snapshot that does not reach back", "trades", `
		up
		tape A3 t1 t2
		down
		up
		tape A90 t80 t81
		took gap t80 t81
		live A90 r1 t1 t2 t80 t81
		trade A91 t82
		took t82`},
	{"a gap is told until it is taken", "trades", `
		up
		tape A1 t1
		down
		up
		tape A90 t80
		trade A91 t81
		took gap t80 t81
		trade A92 t82
		took t82`},
	{"a snapshot in another order", "trades", `
		up
		tape A3 t1 t2 t3
		down
		up
		tape A5 t2 t4 t3 t5
		took t4 t5
		live A5 r1 t1 t2 t3 t4 t5`},
	{"an empty tape is known to be empty", "trades", `
		up
		tape A0
		down
		up
		tape A2 t1 t2
		took t1 t2
		live A2 r1 t1 t2`},
	{"an empty snapshot", "trades", `
		up
		tape A3 t1
		down
		up
		tape B0
		took
		trade B1 t2
		took t2`},
	{"trades that came before the snapshot", "trades", `
		up
		trade A3 t2
		trade A4 t3
		tape A3 t1 t2
		took t3
		live A4 r0 t1 t2 t3`},
	{"nothing is taken twice when a snapshot leaves a gap", "trades", `
		up
		tape A1 t1
		trade A3 t3
		asked resync
		trade A4 t4
		trade A6 t6
		tape A3 t1 t2 t3
		took
		asked resync
		tape A6 t3 t4 t5 t6
		took gap t3 t4 t5 t6`},
	{"a lost last trade", "trades", `
		up
		tape A3 t1
		beat A4
		asked resync
		tape A4 t1 t2
		took t2
		live A4 r1 t1 t2`},

	// Markets, whose changes come without snapshots.
	{"follows", "market", `
		unknown
		up
		unknown
		ack
		read
		live 0 r0
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		change A3 RESOLVED
		change A3 RESOLVED
		took RESOLVED
		live A3 r0
		wait 1h
		asked`},
	{"the first change confirms", "market", `
		up
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		wait 1h
		asked`},
	{"a confirmation after the first change is read for", "market", `
		up
		change A2 STATUS
		read
		took STATUS
		live A2 r0
		ack
		read
		live A2 r1`},
	{"nothing confirms", "market", `
		up
		wait 1999ms
		asked
		wait 1ms
		asked watch
		unknown
		up
		wait 3999ms
		asked
		wait 1ms
		asked watch
		up
		ack
		read
		live 0 r0
		down
		wait 1h
		asked`},
	{"a gap is read over", "market", `
		up
		ack
		change A2 STATUS
		took STATUS
		read
		change A4 METADATA
		read
		took METADATA
		live A4 r1
		change A5 RESOLVED
		took RESOLVED
		live A5 r1`},
	{"after a reconnect it is read", "market", `
		up
		ack
		read
		down
		unknown
		up
		unknown
		ack
		read
		live 0 r1
		change A9 STATUS
		took STATUS
		live A9 r1`},
	{"up twice", "market", `
		up
		change A9 STATUS
		took STATUS
		up
		read
		stale A0 r0
		ack
		live A0 r1
		read`},
	{"a restart counts from anew", "market", `
		up
		change A9 STATUS
		took STATUS
		down
		up
		change B1 METADATA
		took METADATA
		live B1 r1
		change B3 STATUS
		took STATUS
		live B3 r2`},
	{"a lost last change", "market", `
		up
		beat A3
		unknown
		ack
		read
		beat A4
		live A4 r0
		change A5 STATUS
		took STATUS
		read
		beat A5
		live A5 r0
		beat A6
		read
		live A6 r1
		change A7 RESOLVED
		took RESOLVED
		live A7 r1`},

	// Accounts.
	{"orders that are closed and positions of nothing vanish", "user", `
		up
		acct A9 o1 o2=PARTIALLY_FILLED o3=FILLED | p1x5 p2x0 p3x-2 | 100
		live A9 r0 o1 o2 | p1x5 p3x-2 | 100
		order A10 o1 FILLED
		order A11 o4 OPEN
		live A11 r0 o2 o4 | p1x5 p3x-2 | 100
		order A12 o2 CANCELLED
		order A13 o9 EXPIRED
		order A14 o4 PARTIALLY_FILLED
		live A14 r0 o4 | p1x5 p3x-2 | 100
		pos A15 p1x0
		pos A16 p3x-3
		pos A17 p4x1
		pos A18 p9x0
		live A18 r0 o4 | p3x-3 p4x1 | 100
		bal A19 90
		live A19 r0 o4 | p3x-3 p4x1 | 90`},
	{"fills queue", "user", `
		up
		acct A9 | | 1
		fill A10 t1
		fill A11 t2
		fill A11 t2
		took t1 t2
		live A11 r0 | | 1`},
	{"a gap", "user", `
		up
		acct A9 o1 | p1x5 | 100
		bal A11 90
		asked resync
		stale A9 r0 o1 | p1x5 | 100
		acct A11 o1 | p1x6 | 90
		live A11 r1 o1 | p1x6 | 90`},
	{"a reconnect replaces", "user", `
		up
		acct A9 o1 o2 | p1x5 p2x5 | 100
		down
		up
		acct A12 o2 | p2x5 | 90
		live A12 r1 o2 | p2x5 | 90`},
	{"what is not known stays unknown", "user", `
		up
		acct A9 ? | ? | ?
		order A10 o1 OPEN
		pos A11 p1x1
		live A11 r0 ? | ? | ?
		bal A12 90
		live A12 r0 ? | ? | 90`},
	{"changes without a snapshot", "user", `
		up
		order - o1 OPEN
		bal - 90
		unknown
		wait 6s
		asked resync resync reconnect
		unknown`},
}

func TestSides(t *testing.T) {
	b := parseBook("T", ".50x10 .49x5 | .60x7 .61x8")
	before := showBook(b)
	next := applyChanges(b, deltaMessage("T", "", 0, "b.495x1 b.51x2 b.49x0 b.10x0 s.60x0 s.62x3 s.605x4 s.61x9").Changes)
	if got := showBook(next); got != "0.51x2 0.50x10 0.495x1 | .605x4 .61x9 .62x3" && got != ".51x2 .50x10 .495x1 | .605x4 .61x9 .62x3" {
		t.Errorf("the book became %s", got)
	}
	if showBook(b) != before {
		t.Error("the book before was written to")
	}
	if next.Spread == nil || next.Spread.String() != "0.095" {
		t.Errorf("the spread is %v", next.Spread)
	}
	if none := applyChanges(b, deltaMessage("T", "", 0, "b.50x0 b.49x0").Changes); none.Spread != nil || len(none.Bids) != 0 {
		t.Errorf("a book without bids has the spread %v", none.Spread)
	}
	// Sides that did not change are shared, and appending to a shared one must not reach the other.
	one := applyChanges(b, deltaMessage("T", "", 0, "b.40x1").Changes)
	two := applyChanges(b, deltaMessage("T", "", 0, "b.30x1").Changes)
	if got := showBook(one); !strings.Contains(got, "40x1") || strings.Contains(got, "30x1") || strings.Contains(showBook(two), "40x1") {
		t.Errorf("two books of one origin run into each other: %s and %s", got, showBook(two))
	}
	// What the levels before were written as goes with them.
	if further := applyChanges(one, deltaMessage("T", "", 0, "s.70x1").Changes); one.Rendered == nil || further.Rendered == nil || further.Rendered == one.Rendered {
		t.Error("a book with other levels keeps nothing, or where the one before does")
	}
}

func TestStatesAreNotWrittenTo(t *testing.T) {
	l := newMutableAccount(messageOf("acct", "o1 o2 | p1x5 p2x5 | 100"), nil)
	a := l.snapshot()
	before := showAccount(a)
	for _, change := range [][2]string{{"order", "o1 FILLED"}, {"order", "o2 PARTIALLY_FILLED"}, {"pos", "p1x0"}, {"pos", "p2x7"}, {"pos", "p3x1"}, {"pos", "p4x1"}, {"pos", "p4x0"}, {"bal", "90"}} {
		if l.apply(messageOf(change[0], change[1])); showAccount(a) != before {
			t.Fatalf("%s made %q of the account before it", change, showAccount(a))
		}
	}
	if a.Orders[1].Status != market.OrderOpen || a.Positions[1].Size.Cmp(dec("5")) != 0 {
		t.Error("a change was made in the account before it")
	}
	next := l.snapshot()
	if got := showAccount(next); got != "o2  | p2x7 p3x1  | 90" {
		t.Errorf("the account became %q", got)
	}
	// Whoever appends to what was shown writes to nothing but his own.
	mine := append(next.Positions, positionOf("p9x9"))
	if _ = append(next.Positions, positionOf("p8x8")); mine[len(mine)-1].MarketID != "p9" {
		t.Error("two readers have written to the same list")
	}
	if l.apply(messageOf("pos", "p4x1")); showAccount(next) != "o2  | p2x7 p3x1  | 90" || showAccount(l.snapshot()) != "o2  | p2x7 p3x1 p4x1  | 90" {
		t.Errorf("the account became %q", showAccount(l.snapshot()))
	}
	// What a message brings is its own.
	room := append(make([]market.Trade, 0, 9), tradeOf("t1"))
	var items Items
	items.add(Items{Trades: room})
	items.add(Items{Trades: []market.Trade{tradeOf("t2")}})
	if room[:2][1].TradeID != "" || showTrades(items.Trades) != "t1 t2" {
		t.Error("a message's trades were written to")
	}
}

func TestTapeIsBounded(t *testing.T) {
	var s State
	for i := range 3 * maxTape {
		m := tradesMessage("T", "A", uint64(i+1), market.MessageTrade, fmt.Sprintf("t%d", i))
		apply(&s, m)
	}
	if len(s.Trades) != maxTape || s.Trades[0].TradeID != fmt.Sprintf("t%d", 2*maxTape) {
		t.Errorf("the tape holds %d trades from %s on", len(s.Trades), s.Trades[0].TradeID)
	}
	long := make([]market.Trade, 120)
	for i := range long {
		long[i] = tradeOf(fmt.Sprintf("t%d", 3*maxTape-118+i)) // reaches back beyond what is kept, and has two new ones
	}
	if after, items := mergeTape(s.Trades, long, true); showTrades(items.Trades) != "t150 t151" || items.Gap || len(after) != maxTape {
		t.Errorf("of a long snapshot %q is new, gap %t", showTrades(items.Trades), items.Gap)
	}
	if _, items := mergeTape(nil, long[:maxTape], true); !items.Gap {
		t.Error("a full snapshot after an empty tape leaves no gap")
	}
}

func TestTradesWithoutIDs(t *testing.T) {
	at := time.Unix(1, 0)
	a := market.Trade{Timestamp: at, Price: dec("0.5"), Size: dec("1")}
	b := market.Trade{Timestamp: at.UTC(), Price: dec("0.50"), Size: dec("1.0")}
	c := market.Trade{Timestamp: at, Price: dec("0.5"), Size: dec("2")}
	if _, fresh := appendNew([]market.Trade{a}, []market.Trade{b, c, c}, false); len(fresh) != 1 || fresh[0].Size.String() != "2" {
		t.Errorf("%d trades were added", len(fresh))
	}
	if _, fresh := appendNew([]market.Trade{a}, []market.Trade{b, c, c}, true); len(fresh) != 3 || fresh[0].Ordinal != 1 || fresh[1].Ordinal != 0 || fresh[2].Ordinal != 1 {
		t.Errorf("%+v were added by a numbered message", fresh)
	}
}

func TestBufferIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestFeed(t)
		_, w := r.watch(t, bookOf("T"))
		r.upNow(bookOf("T"))
		const n = 3*maxBuffered + 7
		for i := range n {
			r.Message(deltaMessage("T", "A", uint64(i+1), fmt.Sprintf("b.50x%d", i+1)))
		}
		w.topic.mu.Lock()
		waiting := len(w.topic.buffered)
		w.topic.mu.Unlock()
		if waiting > maxBuffered {
			t.Errorf("%d messages wait", waiting)
		}
		// A snapshot that what is left does not reach leaves a gap; a later one goes live.
		r.Message(bookMessage("T", "A", 5, ".50x5 | .60x1"))
		if s, _ := w.State(); s.Live {
			t.Error("the book is live over a gap")
		}
		r.Message(bookMessage("T", "A", n-3, ".50x5 | .60x1"))
		if s, _ := w.State(); !s.Live || s.Seq != n || !strings.Contains(showBook(s.Book), fmt.Sprintf("50x%d ", n)) {
			t.Errorf("the state is %v %d %s", s.Live, s.Seq, showBook(s.Book))
		}
	})
}
