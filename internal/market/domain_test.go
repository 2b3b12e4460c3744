package market

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func levels(s string) []Level {
	var out []Level
	for _, l := range strings.Fields(s) {
		price, size, _ := strings.Cut(l, "x")
		out = append(out, Level{Price: MustDecimal(price), Size: MustDecimal(size)})
	}
	return out
}

func show(d *Decimal) string {
	if d == nil {
		return "-"
	}
	return d.String()
}

func (f Fill) show() string {
	return fmt.Sprintf("%s for %s, average %s, worst %s, slippage %s, complete %v",
		f.FilledSize, f.Cost, show(f.AveragePrice), show(f.WorstPrice), show(f.Slippage), f.Complete)
}

func TestFillByHand(t *testing.T) {
	b := &Book{Bids: NewSide(levels("0.60x100 0.55x100 0.50x50")), Asks: NewSide(levels("0.62x100 0.65x200 0.70x10"))}
	for _, tt := range []struct {
		name string
		got  Fill
		want string
	}{
		{"buy less than the best ask", FillSize(b, SideBuy, MustDecimal("50")), "50 for 31, average 0.62, worst 0.62, slippage 0, complete true"},
		{"buy exactly the best ask", FillSize(b, SideBuy, MustDecimal("100.0")), "100 for 62, average 0.62, worst 0.62, slippage 0, complete true"},
		{"buy from two asks", FillSize(b, SideBuy, MustDecimal("150")), "150 for 94.5, average 0.63, worst 0.65, slippage 0.01, complete true"},
		{"buy more than all asks", FillSize(b, SideBuy, MustDecimal("1000")), "310 for 199, average 0.6419354838709677419354838709677419, worst 0.70, slippage 0.0219354838709677419354838709677419, complete false"},
		{"sell to all bids", FillSize(b, SideSell, MustDecimal("250")), "250 for 140, average 0.56, worst 0.50, slippage 0.04, complete true"},
		{"sell to two bids", FillSize(b, SideSell, MustDecimal("200")), "200 for 115, average 0.575, worst 0.55, slippage 0.025, complete true"},
		{"spend less than the best ask costs", FillAmount(b, SideBuy, MustDecimal("31")), "50 for 31, average 0.62, worst 0.62, slippage 0, complete true"},
		{"spend an amount that does not divide by the price", FillAmount(b, SideBuy, MustDecimal("0.1")), "0.1612903225806451612903225806451613 for 0.1, average 0.62, worst 0.62, slippage 0, complete true"},
		{"spend the cost of an ask and a part of the next", FillAmount(b, SideBuy, MustDecimal("94.5")), "150 for 94.5, average 0.63, worst 0.65, slippage 0.01, complete true"},
		{"spend exactly the cost of the best ask", FillAmount(b, SideBuy, MustDecimal("62")), "100 for 62, average 0.62, worst 0.62, slippage 0, complete true"},
		{"spend more than all asks cost", FillAmount(b, SideBuy, MustDecimal("200")), "310 for 199, average 0.6419354838709677419354838709677419, worst 0.70, slippage 0.0219354838709677419354838709677419, complete false"},
		{"receive an amount from two bids", FillAmount(b, SideSell, MustDecimal("115")), "200 for 115, average 0.575, worst 0.55, slippage 0.025, complete true"},
		{"a size from an empty book", FillSize(&Book{}, SideBuy, MustDecimal("1")), "0 for 0, average -, worst -, slippage -, complete false"},
		{"an amount from an empty book", FillAmount(&Book{}, SideSell, MustDecimal("1")), "0 for 0, average -, worst -, slippage -, complete false"},
		{"levels without a size", FillSize(&Book{Asks: NewSide(levels("0.1x0 0.2x5 0.3x0 0.9x0"))}, SideBuy, MustDecimal("9")), "5 for 1, average 0.2, worst 0.2, slippage 0, complete false"},
		{"levels without a price", FillAmount(&Book{Bids: NewSide(levels("0.5x10 0x1000"))}, SideSell, MustDecimal("9")), "10 for 5, average 0.5, worst 0.5, slippage 0, complete false"},
	} {
		if got := tt.got.show(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func randomBook(r *rand.Rand) *Book {
	var bids, asks []Level
	price := 1 + r.IntN(400)
	for range r.IntN(6) {
		bids = append(bids, Level{NewDecimal(int64(price), -3), NewDecimal(1+r.Int64N(1e6), -int32(r.IntN(4)))})
		price += 1 + r.IntN(20)
	}
	slices.Reverse(bids)
	for range r.IntN(6) {
		asks = append(asks, Level{NewDecimal(int64(price), -3), NewDecimal(1+r.Int64N(1e6), -int32(r.IntN(4)))})
		price += 1 + r.IntN(20)
	}
	return &Book{Bids: NewSide(bids), Asks: NewSide(asks)}
}

// TestFillProperties checks that fills agree with a computation in big.Rat.
func TestFillProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	// FillAmount rounds filled sizes, and average prices are rounded too. So these values may differ slightly from the exact values.
	tolerance, _ := new(big.Rat).SetString("1e-24")
	for range 3000 {
		b, side, wanted := randomBook(r), []OrderSide{SideBuy, SideSell}[r.IntN(2)], NewDecimal(1+r.Int64N(4e6), -int32(r.IntN(3)))
		book := oppositeSide(b, side).Levels()
		for _, byAmount := range []bool{false, true} {
			got, left := FillSize(b, side, wanted), rat(t, wanted)
			if byAmount {
				got = FillAmount(b, side, wanted)
			}
			size, cost, worst := new(big.Rat), new(big.Rat), -1
			for i, l := range book {
				if left.Sign() == 0 {
					break
				}
				s := rat(t, l.Size)
				worth := s
				if byAmount {
					worth = new(big.Rat).Mul(s, rat(t, l.Price))
				}
				if worth.Cmp(left) > 0 {
					s = new(big.Rat).Quo(new(big.Rat).Mul(s, left), worth)
					worth = left
				}
				left = new(big.Rat).Sub(left, worth)
				size.Add(size, s)
				cost.Add(cost, new(big.Rat).Mul(s, rat(t, l.Price)))
				worst = i
			}
			fail := func(what string) {
				t.Helper()
				t.Fatalf("wrong %s: a %s order of %s against %v, by amount %v, gives %s", what, side, wanted, book, byAmount, got.show())
			}
			if got.Complete != (left.Sign() == 0) {
				fail("Complete")
			}
			if rat(t, got.Cost).Cmp(cost) != 0 {
				fail("cost")
			}
			if byAmount && got.Complete && got.Cost.Cmp(wanted) != 0 {
				fail("cost, which is not the amount")
			}
			if diff := new(big.Rat).Sub(rat(t, got.FilledSize), size); diff.Abs(diff).Cmp(tolerance) > 0 || !byAmount && diff.Sign() != 0 {
				fail("size")
			}
			if worst < 0 {
				if got.AveragePrice != nil || got.WorstPrice != nil || got.Slippage != nil {
					fail("prices, because nothing is filled")
				}
				continue
			}
			best, last, average := book[0].Price, book[worst].Price, *got.AveragePrice
			if got.WorstPrice.Cmp(last) != 0 {
				fail("worst price")
			}
			if side == SideBuy && (average.Cmp(best) < 0 || average.Cmp(last) > 0) || side == SideSell && (average.Cmp(best) > 0 || average.Cmp(last) < 0) {
				fail("average, which lies outside of the best and worst prices")
			}
			if diff := new(big.Rat).Sub(rat(t, average), new(big.Rat).Quo(cost, size)); diff.Abs(diff).Cmp(tolerance) > 0 {
				fail("average")
			}
			if got.Slippage.Sign() < 0 || got.Slippage.Cmp(average.Sub(best).Abs()) != 0 {
				fail("slippage")
			}
		}
	}
}

func TestBookCoversAndCut(t *testing.T) {
	book := func(bids, asks, depth int) *Book {
		return &Book{TokenID: "t", Bids: NewSide(make([]Level, bids)), Asks: NewSide(make([]Level, asks)), Depth: depth, Seq: 3}
	}
	for _, tt := range []struct {
		book  *Book
		depth int
		want  bool
	}{
		{book(20, 20, 20), 1, true}, {book(20, 20, 20), 20, true}, {book(20, 20, 20), 21, false},
		{book(20, 3, 20), 21, false}, {book(3, 20, 20), 21, false}, // the venue may have more levels on the side with 20 levels
		{book(19, 19, 20), 200, true}, {book(0, 0, 20), 200, true}, {book(25, 19, 20), 50, false},
		{book(0, 0, 0), 1, false}, // Depth 0: the depth of the request is unknown
	} {
		if got := tt.book.Covers(tt.depth); got != tt.want {
			t.Errorf("a book with %d bids, %d asks and depth %d covers depth %d: got %v, want %v", tt.book.Bids.Len(), tt.book.Asks.Len(), tt.book.Depth, tt.depth, got, tt.want)
		}
	}
	b := book(5, 3, 20)
	if b.Cut(5) != b || b.Cut(50) != b {
		t.Error("Cut copied a book that is short enough")
	}
	c := b.Cut(4)
	if c == b || c.Bids.Len() != 4 || c.Asks.Len() != 3 || c.Depth != 4 || c.Seq != 3 || c.TokenID != "t" || b.Bids.Len() != 5 || b.Depth != 20 {
		t.Errorf("Cut(4) of a book with 5 bids and 3 asks: got %+v, want 4 bids, 3 asks and depth 4; the book is %+v", c, b)
	}
	if c.Covers(5) {
		t.Error("a book that was cut to depth 4 covers depth 5")
	}
	_ = append(c.Bids.Levels(), Level{Price: MustDecimal("1")})
	if b.Bids.Levels()[4].Price.Sign() != 0 {
		t.Error("an append to the levels of a cut book changed the original book")
	}
}

func TestMidpoint(t *testing.T) {
	for _, tt := range []struct {
		bids, asks, want string
	}{{"0.60x1 0.1x1", "0.65x1", "0.625"}, {"0.60x1", "0.62x1", "0.61"}, {"", "0.62x1", "-"}, {"0.60x1", "", "-"}} {
		b := &Book{Bids: NewSide(levels(tt.bids)), Asks: NewSide(levels(tt.asks))}
		s := &Spread{BestBid: b.BestBid(), BestAsk: b.BestAsk()}
		if show(b.Midpoint()) != tt.want || show(s.Midpoint()) != tt.want {
			t.Errorf("bids %q, asks %q: got midpoints %s of the book and %s of the spread, want %s", tt.bids, tt.asks, show(b.Midpoint()), show(s.Midpoint()), tt.want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	m := &Market{Outcomes: []Outcome{{TokenID: "1", Label: "Yes"}, {TokenID: "2", Label: "No"}, {Label: "Maybe"}, {TokenID: "4", Label: "NO"}}}
	if m.OutcomeByToken("2") != &m.Outcomes[1] || m.OutcomeByToken("3") != nil || m.OutcomeByToken("") != nil {
		t.Error("OutcomeByToken returned a wrong outcome")
	}
	if m.OutcomeByLabel("YES") != &m.Outcomes[0] || m.OutcomeByLabel("no") != nil || m.OutcomeByLabel("up") != nil {
		t.Error("OutcomeByLabel returned a wrong outcome")
	}
}

func TestWinner(t *testing.T) {
	yes, no := true, false
	market := func(status Status, resolution string, flags ...*bool) *Market {
		m := &Market{Status: status}
		for i, f := range flags {
			m.Outcomes = append(m.Outcomes, Outcome{TokenID: fmt.Sprint(i), Label: []string{"Up", "Down", "Flat"}[i], Winner: f})
		}
		if resolution != "" {
			m.Resolution = &Resolution{Outcome: resolution}
		}
		return m
	}
	unnamed := market(StatusResolved, "down", nil, nil, nil)
	for i := range unnamed.Outcomes {
		unnamed.Outcomes[i].TokenID = ""
	}
	for name, tt := range map[string]struct {
		m      *Market
		winner string
		prices string
	}{
		"open":                       {market(StatusOpen, "", nil, nil), "-", "- -"},
		"open with a resolution":     {market(StatusOpen, "Up", nil, nil), "-", "- -"},
		"resolved, by flags":         {market(StatusResolved, "", &no, &yes), "Down", "0 1"},
		"resolved, one flag":         {market(StatusResolved, "", &yes, nil, nil), "Up", "1 0 0"},
		"resolved, nobody won":       {market(StatusResolved, "", &no, &no), "-", "- -"},
		"resolved, only losers":      {market(StatusResolved, "", &no, nil), "-", "- -"},
		"resolved, flags lag behind": {market(StatusResolved, "up", &no, &no), "Up", "1 0"},
		"resolved, refunded":         {market(StatusResolved, "refund", &no, &no), "-", "- -"},
		"flags before the label":     {market(StatusResolved, "up", &no, &yes), "Down", "0 1"},
		"resolved, two winners":      {market(StatusResolved, "", &yes, &yes, &no), "Up", "1 1 0"},
		"resolved, by label":         {market(StatusResolved, "uP", nil, nil), "Up", "1 0"},
		"resolved, unknown label":    {market(StatusResolved, "Sideways", nil, nil), "-", "- -"},
		"resolved, no winner named":  {market(StatusResolved, "", nil, nil), "-", "- -"},
		"resolved, unnamed tokens":   {unnamed, "Down", "0 1 0"},
		"closed with a flag already": {market(StatusClosed, "", &yes, &no), "-", "- -"},
		"cancelled":                  {market(StatusCancelled, "Up", nil, nil), "-", "- -"},
	} {
		winner := "-"
		if w := tt.m.Winner(); w != nil {
			winner = w.Label
		}
		var prices []string
		for i := range tt.m.Outcomes {
			o := tt.m.Outcomes[i] // Won and SettlementPrice must accept a copy
			price := tt.m.SettlementPrice(&o)
			prices = append(prices, show(price))
			if won := tt.m.Won(&o); (price == nil) != (won == nil) || price != nil && *won != (price.Sign() > 0) {
				t.Errorf("%s: outcome %s has Won %v and the settlement price %s, which do not agree", name, o.Label, won, price)
			}
		}
		if got := strings.Join(prices, " "); winner != tt.winner || got != tt.prices {
			t.Errorf("%s: got winner %s and prices %s, want %s and %s", name, winner, got, tt.winner, tt.prices)
		}
		if tt.m.Won(nil) != nil || tt.m.SettlementPrice(nil) != nil {
			t.Errorf("%s: Won or SettlementPrice of a nil outcome is not nil", name)
		}
	}
}

func TestEventInclude(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2024, 1, d, 0, 0, 0, 0, time.UTC) }
	first := &Market{MarketID: "1", StartsAt: day(3), EndsAt: day(5), Volume: new(MustDecimal("1.50"))}
	var e Event
	e.Include(&Market{MarketID: "0"})
	if !e.StartsAt.IsZero() || !e.EndsAt.IsZero() || e.Volume != nil {
		t.Errorf("an event whose market has no times and no volume: got %+v, want no times and no volume", e)
	}
	e.Include(first)
	e.Include(&Market{MarketID: "2", StartsAt: day(2), EndsAt: day(4), Volume: new(MustDecimal("2.5"))})
	e.Include(&Market{MarketID: "3", EndsAt: day(9)})
	if len(e.Markets) != 4 || !e.StartsAt.Equal(day(2)) || !e.EndsAt.Equal(day(9)) || e.Volume.String() != "4.00" || first.Volume.String() != "1.50" {
		t.Errorf("an event with 4 markets: got %+v with volume %s, want 4 markets, days 2 to 9 and volume 4.00", e, e.Volume)
	}
}

func TestMarketWithChange(t *testing.T) {
	m := &Market{MarketID: "m", Status: StatusOpen, StatusRaw: "ACTIVE", Outcomes: []Outcome{{TokenID: "1", Label: "Yes"}, {Label: "No"}, {Label: "Void"}}}
	winners := func(m *Market) string {
		var out []string
		for i := range m.Outcomes {
			if w := m.Outcomes[i].Winner; w != nil {
				out = append(out, fmt.Sprintf("%s:%v", m.Outcomes[i].Label, *w))
			}
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct {
		name    string
		change  MarketChange
		status  Status
		winners string
	}{
		{"nothing", MarketChange{Kind: "METADATA"}, StatusOpen, ""},
		{"status", MarketChange{Kind: "STATUS", Status: StatusClosed, StatusRaw: "CLOSED"}, StatusClosed, ""},
		{"resolved, by token", MarketChange{Kind: "RESOLVED", WinningTokenID: "1", Outcome: "Yes"}, StatusResolved, "Yes:true No:false Void:false"},
		{"resolved, by label", MarketChange{Kind: "RESOLVED", Outcome: "NO"}, StatusResolved, "Yes:false No:true Void:false"},
		{"resolved, token unknown", MarketChange{Kind: "RESOLVED", Outcome: "NO", WinningTokenID: "9"}, StatusResolved, "Yes:false No:true Void:false"},
		{"resolved, nobody won", MarketChange{Kind: "RESOLVED", Status: StatusResolved, StatusRaw: "RESOLVED"}, StatusResolved, ""},
		{"resolved, no such outcome", MarketChange{Kind: "RESOLVED", Outcome: "Yes "}, StatusResolved, ""},
		{"resolved, no such token", MarketChange{Kind: "RESOLVED", WinningTokenID: "9"}, StatusResolved, ""},
		{"resolution disputed", MarketChange{Kind: "RESOLVED", Status: StatusDisputed, StatusRaw: "DISPUTED", WinningTokenID: "1"}, StatusDisputed, ""},
		{"resolved as cancelled", MarketChange{Kind: "RESOLVED", Status: StatusCancelled, StatusRaw: "CANCELLED"}, StatusCancelled, ""},
	} {
		got := m.With(tt.change)
		if got.Status != tt.status || winners(got) != tt.winners || got.MarketID != "m" {
			t.Errorf("%s: got status %s and winners %q, want %s and %q", tt.name, got.Status, winners(got), tt.status, tt.winners)
		}
		if m.Status != StatusOpen || winners(m) != "" || got == m {
			t.Fatalf("%s: With changed the market itself, or returned it", tt.name)
		}
	}
}

// TestMarketWithTickSizeAndTime checks that a change sets the tick size, and a RESOLVED change the time of the resolution, also if the
// winner is known. It must not replace a known time.
func TestMarketWithTickSizeAndTime(t *testing.T) {
	old, fresh, at := MustDecimal("0.01"), MustDecimal("0.001"), time.Unix(1_900_000_000, 0)
	m := &Market{Status: StatusOpen, TickSize: &old, Outcomes: []Outcome{{TokenID: "1", Label: "Lakers"}, {TokenID: "2", Label: "Celtics"}}}
	if got := m.With(MarketChange{Kind: "TICK_SIZE", TickSize: &fresh, At: at}); got.TickSize != &fresh || m.TickSize != &old || got.Resolution != nil || got.Status != StatusOpen {
		t.Errorf("after a new tick size: got %+v", got)
	}
	resolved := MarketChange{Kind: "RESOLVED", WinningTokenID: "2", Outcome: "Celtics", At: at}
	got := m.With(resolved)
	if got.Resolution == nil || got.Resolution.Outcome != "Celtics" || !got.Resolution.ResolvedAt.Equal(at) || got.TickSize != &old {
		t.Errorf("after the resolution: got %+v", got.Resolution)
	}
	// REST may have the winner and not the time.
	won := *got
	won.Resolution = nil
	if got := won.With(resolved); got.Resolution == nil || got.Resolution.Outcome != "Celtics" || !got.Resolution.ResolvedAt.Equal(at) {
		t.Errorf("with a known winner: got %+v", got.Resolution)
	}
	resolved.At = at.Add(time.Hour)
	if again := got.With(resolved); !again.Resolution.ResolvedAt.Equal(at) {
		t.Errorf("a repeated resolution replaces the time by %s", again.Resolution.ResolvedAt)
	}
}

// TestMarketWithResolution checks that a RESOLVED change sets a missing winner and ends a dispute. The change must
// affect neither a cancelled market nor the known winner of a resolved market.
func TestMarketWithResolution(t *testing.T) {
	change := MarketChange{Kind: "RESOLVED", Status: StatusResolved, StatusRaw: "RESOLVED", Outcome: "No"}
	for _, tt := range []struct {
		status  Status
		label   string
		want    Status
		winner  string
		outcome string
	}{
		{StatusClosed, "", StatusResolved, "No", "No"},
		{StatusDisputed, "Yes", StatusResolved, "No", "No"},
		{StatusResolved, "", StatusResolved, "No", "No"},
		{StatusResolved, "Yes", StatusResolved, "Yes", "Yes"},
		{StatusCancelled, "", StatusCancelled, "-", "-"},
	} {
		m := &Market{Status: tt.status, Outcomes: []Outcome{{TokenID: "1", Label: "Yes"}, {TokenID: "2", Label: "No"}}}
		if tt.label != "" {
			m.Resolution = &Resolution{Outcome: tt.label, Source: "a court"}
		}
		got, winner, outcome := m.With(change), "-", "-"
		if w := got.Winner(); w != nil {
			winner = w.Label
		}
		if got.Resolution != nil {
			outcome = got.Resolution.Outcome
			if tt.label != "" && got.Resolution.Source != "a court" {
				t.Errorf("%s: the resolution lost its source", tt.status)
			}
		}
		if got.Status != tt.want || winner != tt.winner || outcome != tt.outcome {
			t.Errorf("market with status %s: got status %s, winner %s, resolution %s; want %s, %s, %s", tt.status, got.Status, winner, outcome, tt.want, tt.winner, tt.outcome)
		}
	}
}

// TestBookSideDelta checks that a delta turns the old side into the new side, and that each level of the delta changes something.
func TestBookSideDelta(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		from, to := randomBook(r), randomBook(r)
		for _, tt := range []struct {
			side     OrderSide
			from, to Side
		}{{SideBuy, from.Bids, to.Bids}, {SideSell, from.Asks, to.Asks}} {
			sizes := map[string]Decimal{}
			for _, l := range tt.from.Levels() {
				sizes[l.Price.String()] = l.Size
			}
			delta := BookSideDelta(tt.from, tt.to, tt.side)
			for _, l := range delta {
				old, had := sizes[l.Price.String()]
				if had && old.Cmp(l.Size) == 0 || !had && l.Size.IsZero() {
					t.Fatalf("delta from %v to %v: level %v changes nothing", tt.from, tt.to, l)
				}
				if sizes[l.Price.String()] = l.Size; l.Size.IsZero() {
					delete(sizes, l.Price.String())
				}
			}
			if len(sizes) != tt.to.Len() {
				t.Fatalf("from %v to %v: the delta %v leads to the sizes %v", tt.from, tt.to, delta, sizes)
			}
			for _, l := range tt.to.Levels() {
				if size, ok := sizes[l.Price.String()]; !ok || size.Cmp(l.Size) != 0 {
					t.Fatalf("from %v to %v: the delta %v leads to the sizes %v", tt.from, tt.to, delta, sizes)
				}
			}
		}
	}
}
