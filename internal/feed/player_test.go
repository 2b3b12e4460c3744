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
	"oddsgraph/internal/market/messages"
)

// script is a sequence of events for a watched topic, and the expected results. Each line contains one event or one result. The
// events are:
//
//	up | down                     the connection
//	snap A41 .50x10 | .60x10      a snapshot of a book: epoch A, sequence number 41; "-" means no number, "@7" adds a time
//	delta A42<41 b.50x0 s.60x5    a change of a book, here after the sequence number 41
//	price A7 .65 .64/.66          a price, optionally with the best bid and ask
//	tape A3 t1 t2 | trade A4 t3   the latest trades, or one more trade
//	change A2 STATUS              a change of a market
//	acct A9 o1 o2 | p1x5 | 100    an account: orders, positions, balance; "?" means unknown
//	order A10 o1 FILLED | pos A11 p1x0 | bal A12 90 | fill A13 t1
//	beat A42                      a heartbeat; "beat 42" has no epoch
//	ack                           the confirmation of the subscription
//	rest A41@7 .50x10 | .60x10    a book that was read over REST and is offered to the topic
//	snap -#7 .50x10 | .60x10      a message with the internal number 7
//	wait 2s
//
// The results are:
//
//	live A42 r0 .50x10 | .60x10   the state: epoch and number, count of resyncs, value
//	stale A42 r0 ...
//	unknown
//	took [gap] t1 t2              the items that the watch has delivered
//	asked resync watch            all calls to the upstream since the last check
//	read                          the sink was notified that the market has changed
//	from REST                     the source of the state
//	unread 1 0 0 2                the changes of unknown orders, positions, balances and trades; the sink was notified of them
//
// In a script of a channel with the suffix ", no snapshots", the venue sends only snapshots of books.
//
// After each line, the player checks that the reader was signalled if the state changed. If the topic is live, the sink must have
// the value. If the topic is not live, the sink must have no fresh value. The player does not check the sink for trades and
// markets.
type script struct {
	name, channel, lines string
}

type player struct {
	*testFeed
	t      *testing.T
	key    messages.Topic
	reader *Reader
	w      *Watch
	line   string // the number and the text of the current line
	last   State
	// pending contains the items from Watch.Take that the script has not checked yet.
	pending Items
}

// newPlayer returns a player that watches a topic. Call newPlayer in a synctest bubble.
func newPlayer(t *testing.T, key messages.Topic, change ...func(*Config)) *player {
	p := &player{t: t, key: key}
	p.testFeed = newTestFeed(t, change...)
	p.reader, p.w = p.watch(t, p.key)
	p.up.take()
	return p
}

// run runs a script.
func (s *script) run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		channel, none := strings.CutSuffix(s.channel, ", no snapshots")
		p := newPlayer(t, messages.Topic{Channel: messages.Channel(channel), ID: "T"}, func(c *Config) {
			if none {
				c.Snapshots = nil
			}
		})
		defer p.reader.Close()
		for n, line := range strings.Split(strings.TrimSpace(s.lines), "\n") {
			if line = strings.TrimSpace(line); line != "" {
				p.line = fmt.Sprintf("line %d, %q", n+1, line)
				p.play(line)
				p.check()
			}
		}
		if left := p.testFeed.up.take(); len(left) > 0 {
			t.Errorf("at the end of the script, the upstream has got the unchecked calls %q", left)
		}
		p.items()
		if !p.pending.empty() {
			t.Errorf("at the end of the script, the watch has the unchecked items %+v", p.pending)
		}
	})
}

func (p *player) items() {
	_, items, err := p.w.Take()
	if err != nil {
		p.t.Fatalf("%s: the watch has ended: %v", p.line, err)
	}
	p.pending.add(items)
}

// numbers parses a text such as "A42<41@7": the epoch, the sequence number, the previous sequence number and the time.
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
		panic("not a sequence number: " + s)
	}
	return epoch, seq, prev, at
}

// internalNumber cuts the internal number from the end of a text and parses the number. "#7" is the number 7 of epoch 1, and "#2.7"
// is the number 7 of epoch 2.
func internalNumber(s string) (rest string, n messages.Internal) {
	rest, number, ok := strings.Cut(s, "#")
	if !ok {
		return s, n
	}
	epoch, seq, ok := strings.Cut(number, ".")
	if !ok {
		epoch, seq = "1", number
	}
	n.Epoch, _ = strconv.ParseUint(epoch, 10, 64)
	n.Seq, _ = strconv.ParseUint(seq, 10, 64)
	return rest, n
}

func (p *player) play(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	number, value, _ := strings.Cut(rest, " ")
	value = strings.TrimSpace(value)
	switch verb {
	case "up":
		p.Up([]messages.Topic{p.key})
	case "ack":
		p.Acknowledged([]messages.Topic{p.key})
	case "down":
		p.Down([]messages.Topic{p.key}, nil)
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		time.Sleep(d)
		synctest.Wait()
	case "beat":
		epoch, seq, _, _ := numbers(number)
		p.Heartbeat(epoch, map[messages.Topic]uint64{p.key: seq})
	case "snap", "delta", "price", "tape", "trade", "change", "acct", "order", "pos", "bal", "fill":
		m := messageOf(verb, value)
		m.Topic, m.ReceivedAt = p.key, time.Now()
		number, m.Internal = internalNumber(number)
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
			p.t.Fatalf("%s: the state is %q", p.line, got)
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
			p.t.Fatalf("%s: the watch delivered the items %q", p.line, got)
		}
		p.pending = Items{}
	case "asked":
		var got []string
		for _, a := range p.testFeed.up.take() {
			got = append(got, strings.Fields(a)[0])
		}
		if strings.Join(got, " ") != rest {
			p.t.Fatalf("%s: the upstream got the calls %q", p.line, got)
		}
	case "read":
		if n := len(p.sink.takeMarkets()); n == 0 {
			p.t.Fatalf("%s: Sink was not notified of a change", p.line)
		}
	case "rest":
		p.join(number, value)
	case "unread":
		s, _ := p.w.State()
		u := s.Unread
		if got := fmt.Sprintf("%d %d %d %d", u.Orders, u.Positions, u.Balance, u.Trades); got != rest || p.sink.unread != u.Orders+u.Positions+u.Balance {
			p.t.Fatalf("%s: the counts are %s, and the sink was notified %d times", p.line, got, p.sink.unread)
		}
	case "from":
		if s, _ := p.w.State(); string(s.Meta.Source) != rest || p.sink.entry(p.key).meta.Source != s.Meta.Source {
			p.t.Fatalf("%s: the source of the state is %s, and the source in the sink is %s", p.line, s.Meta.Source, p.sink.entry(p.key).meta.Source)
		}
	default:
		p.t.Fatalf("unknown line %q", line)
	}
}

func messageOf(verb, value string) *messages.Message {
	m := &messages.Message{}
	switch verb {
	case "snap":
		m.Kind, m.Book = messages.KindBookSnapshot, parseBook("", value)
	case "delta":
		m = deltaMessage("T", "", 0, value)
	case "price":
		m.Kind = messages.KindPrice
		price, spread, _ := strings.Cut(value, " ")
		m.Price = &market.Price{TokenID: "T", Price: dec(price)}
		if bid, ask, ok := strings.Cut(spread, "/"); ok {
			m.Spread = &market.Spread{TokenID: "T", BestBid: decp(bid), BestAsk: decp(ask)}
		}
	case "tape", "trade", "fill":
		kind := map[string]messages.Kind{"tape": messages.KindTradesSnapshot, "trade": messages.KindTrade, "fill": messages.KindFill}
		m = tradesMessage("T", "", 0, kind[verb], strings.Fields(value)...)
	case "change":
		m.Kind, m.Market = messages.KindMarket, &market.MarketChange{Kind: value}
	case "acct":
		part := strings.Split(value, "|")
		m.Kind = messages.KindUserSnapshot
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
		m.Kind, m.Orders = messages.KindOrder, []market.Order{{OrderID: id, Status: market.OrderStatus(status)}}
	case "pos":
		m.Kind, m.Positions = messages.KindPosition, []market.Position{positionOf(value)}
	case "bal":
		m.Kind, m.Balance = messages.KindBalance, &market.Balance{CashBalance: decp(value)}
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

// check checks that a changed state has signalled the reader, and compares the values in the sink with the state.
func (p *player) check() {
	s, err := p.w.State()
	if err != nil {
		return
	}
	signalled := slices.Contains(p.reader.Take(), p.w)
	if !signalled && (s.Live != p.last.Live || s.Known && (s.Seq != p.last.Seq || s.Epoch != p.last.Epoch) || s.Resyncs != p.last.Resyncs || show(&s) != show(&p.last)) {
		p.t.Fatalf("%s: the reader was not signalled that %+v has become %+v", p.line, p.last, s)
	}
	p.last = s
	if s.Meta.Stale == s.Live {
		if s.Known {
			p.t.Fatalf("%s: Live is %t and Meta.Stale is %t, want opposite values", p.line, s.Live, s.Meta.Stale)
		}
	}
	if p.key.Channel == messages.ChannelTrades || p.key.Channel == messages.ChannelMarket {
		return
	}
	k := p.sink.entry(p.key)
	if k.fresh() != s.Live {
		p.t.Fatalf("%s: Live is %t, but the value in the sink is fresh: %t", p.line, s.Live, k.fresh())
	}
	if !s.Live {
		if p.sink.spread("T").fresh() {
			p.t.Fatalf("%s: the spread in the sink is fresh, but the topic is not live", p.line)
		}
		return
	}
	if got := (&State{Price: k.price, Spread: s.Spread, Book: k.book, Account: k.account}); show(got) != show(&s) {
		p.t.Fatalf("%s: the sink has the value %s, want %s", p.line, show(got), show(&s))
	}
	if k := p.sink.spread("T"); (s.Spread != nil) != k.fresh() || s.Spread != nil && k.spread != s.Spread {
		p.t.Fatalf("%s: the spread in the sink is not the spread of the state", p.line)
	}
	if s.Book != nil && (s.Book.Seq != s.Seq || s.Book.Epoch != s.Epoch || s.Book.TokenID != "T") {
		p.t.Fatalf("%s: the book has the token %s and the number %s%d, want the token T and the number of the state, %s%d", p.line, s.Book.TokenID, s.Book.Epoch, s.Book.Seq, s.Epoch, s.Seq)
	}
}
