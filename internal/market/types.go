package market

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Balance is a wallet's money as the venue states it.
type Balance struct {
	PortfolioValue, CashBalance *Decimal
	// PositionsValue is the value of the positions alone; nil where the venue does not state it.
	PositionsValue *Decimal
	// TotalValue is the venue's figure, or positionsValue + cash, or portfolioValue + cash; nil when none is known.
	TotalValue *Decimal
	// UpdatedAt is the venue's time; zero when it gave none.
	UpdatedAt time.Time
}

// Position is a holding of one outcome token.
type Position struct {
	MarketID string
	// TokenID is empty where the venue names the holding by market and outcome only.
	TokenID string
	// Outcome is the label exactly as the venue spells it.
	Outcome string
	Size    Decimal
	// AvgPrice, CurrentPrice and UnrealizedPnl are the venue's own figures; nil where it gave none.
	AvgPrice, CurrentPrice, UnrealizedPnl *Decimal
	// Ordinal numbers the lots of one market and outcome from 0; see NumberPositions.
	Ordinal int
}

// CostBasis returns size × avgPrice, or nil when the average price is not known.
func (p *Position) CostBasis() *Decimal {
	if p.AvgPrice == nil {
		return nil
	}
	c := p.costAt(*p.AvgPrice)
	return &c
}

func (p *Position) costAt(price Decimal) Decimal { return p.Size.Mul(price).Reduce() }

// Order is an active order of a wallet.
type Order struct {
	OrderID, MarketID string
	// TokenID is empty where the venue names the order's token by market and outcome only.
	TokenID                 string
	Side                    OrderSide
	SideRaw                 string
	Outcome                 string
	Price, Size, FilledSize Decimal
	Status                  OrderStatus
	StatusRaw               string
	// CreatedAt is zero when the venue gave none.
	CreatedAt time.Time
}

// Trade is one execution, of a wallet or on the public tape.
type Trade struct {
	// TradeID is empty where the venue gives none.
	TradeID                    string
	MarketID, TokenID, Outcome string
	Side                       OrderSide
	SideRaw                    string
	Price, Size                Decimal
	Fee                        *Decimal
	Timestamp                  time.Time
	TransactionHash            string
	// Ordinal numbers trades without ids that say the same from 0; see Numbering.
	Ordinal int
}

// HistoryRecord is one event of a wallet's history.
type HistoryRecord struct {
	// ID is empty where the venue gives none.
	ID                         string
	Kind                       HistoryKind
	KindRaw                    string
	Timestamp                  time.Time
	Amount                     *Decimal
	MarketID, TokenID, Outcome string
	// Side is empty for records that are no trades.
	Side            OrderSide
	Price, Size     *Decimal
	TransactionHash string
	// Ordinal numbers records without ids that say the same from 0; see Numbering.
	Ordinal int
}

// Market is one question that is traded, with its outcomes.
type Market struct {
	MarketID, Slug, Question, GroupItemTitle string
	Description, Image, Category             string
	Tags                                     []string
	Status                                   Status
	StatusRaw                                string
	// AcceptingOrders is nil where the venue does not say.
	AcceptingOrders                *bool
	StartsAt, EndsAt               time.Time
	Volume, Volume24h, Liquidity   *Decimal
	TickSize, MinOrderSize         *Decimal
	EventID, EventSlug, EventTitle string
	// Outcomes are in the venue's order.
	Outcomes   []Outcome
	Resolution *Resolution
	UpdatedAt  time.Time
	// Summary tells that the market comes from a list that leaves out description and resolution.
	Summary bool
}

// Outcome is one side of a market and the token that is traded for it.
type Outcome struct {
	// TokenID is empty where the venue does not name the token.
	TokenID, Label string
	// Price is the venue's figure in the market's own answer; nil where it gave none.
	Price *Decimal
	// Winner is the venue's flag; nil where it gave none, or none of the market's is true.
	Winner *bool
}

// Resolution is how a market ended.
type Resolution struct {
	// Outcome is the winning label; empty where the venue does not name it.
	Outcome    string
	ResolvedAt time.Time
	Source     string
}

// OutcomeByToken returns the outcome that is traded as tokenID, or nil.
func (m *Market) OutcomeByToken(tokenID string) *Outcome {
	for i := range m.Outcomes {
		if tokenID != "" && m.Outcomes[i].TokenID == tokenID {
			return &m.Outcomes[i]
		}
	}
	return nil
}

// OutcomeByLabel returns the outcome with the label, compared without case, or nil when none or more than one has it.
func (m *Market) OutcomeByLabel(label string) *Outcome {
	var found *Outcome
	for i := range m.Outcomes {
		if strings.EqualFold(m.Outcomes[i].Label, label) {
			if found != nil {
				return nil
			}
			found = &m.Outcomes[i]
		}
	}
	return found
}

// Winner returns the outcome that won, or nil while the market is not resolved or nobody is known to have won. The flags of
// the outcomes decide if one of them is true: venues write them as false before they name the winner in the resolution, and
// for markets that nobody won. Otherwise the label of the resolution decides.
func (m *Market) Winner() *Outcome {
	if m.Status != StatusResolved {
		return nil
	}
	if i := m.flagged(); i >= 0 {
		return &m.Outcomes[i]
	}
	if m.Resolution != nil && m.Resolution.Outcome != "" {
		return m.OutcomeByLabel(m.Resolution.Outcome)
	}
	return nil
}

// flagged returns the index of the first outcome that is flagged as the winner, or -1.
func (m *Market) flagged() int {
	return slices.IndexFunc(m.Outcomes, func(o Outcome) bool { return o.Winner != nil && *o.Winner })
}

// Won reports whether an outcome of a resolved market won; nil while that is not known.
func (m *Market) Won(o *Outcome) *bool {
	w := m.Winner()
	if o == nil || w == nil {
		return nil
	}
	if w.TokenID == o.TokenID && strings.EqualFold(w.Label, o.Label) || // a token may be unnamed, a label repeated
		o.Winner != nil && *o.Winner {
		return &won
	}
	return &lost
}

// SettlementPrice returns 1 or 0 for an outcome of a resolved market, or nil while no winner is known.
func (m *Market) SettlementPrice(o *Outcome) *Decimal {
	switch m.Won(o) {
	case nil:
		return nil
	case &won:
		return &one
	}
	return &zero
}

// won and lost are what Won returns.
var won, lost = true, false

// zero and one are what outcomes are settled at.
var zero, one = NewDecimal(0, 0), NewDecimal(1, 0)

// Event is a group of markets.
type Event struct {
	EventID, Slug, Title string
	// StartsAt and EndsAt span the event's markets; zero when none of them has the time.
	StartsAt, EndsAt time.Time
	// Volume is the sum over the markets; nil when none of them has one.
	Volume *Decimal
	// Markets are summaries in the venue's order.
	Markets []*Market
	// LeftOut are the markets that could not be read; Volume is a sum without them.
	LeftOut LeftOut
}

// Price is what the venue says a token costs.
type Price struct {
	TokenID string
	// Price is 0 to 1 per share.
	Price Decimal
	Basis PriceBasis
	// Timestamp is the venue's time; zero when it gave none.
	Timestamp time.Time
}

// Spread is the top of a token's book.
type Spread struct {
	TokenID string
	// BestBid and BestAsk are nil for an empty side. Spread may be known where the sides are not.
	BestBid, BestAsk, Spread *Decimal
	Timestamp                time.Time
	// FromBook reports that these are the first levels of the order book, read because the venue gave no spread.
	FromBook bool
}

// Basis says where the figures were read.
func (s *Spread) Basis() SpreadBasis {
	if s.FromBook {
		return SpreadOfBook
	}
	return SpreadOfVenue
}

// Midpoint returns the mean of best bid and best ask, or nil when a side is empty.
func (s *Spread) Midpoint() *Decimal { return midpoint(s.BestBid, s.BestAsk) }

// Width returns best ask − best bid, or nil when a side is empty.
func (s *Spread) Width() *Decimal { return width(s.BestBid, s.BestAsk) }

// Price returns what the token costs by its best prices: their mean, or that of the only side. ok is false when both sides
// are empty.
func (s *Spread) Price() (price Decimal, basis PriceBasis, ok bool) {
	switch {
	case s.BestBid == nil && s.BestAsk == nil:
		return Decimal{}, "", false
	case s.BestAsk == nil:
		return *s.BestBid, BasisBestBid, true
	case s.BestBid == nil:
		return *s.BestAsk, BasisBestAsk, true
	}
	return *s.Midpoint(), BasisMidpoint, true
}

// Level is a price in a book and all that is offered at it.
type Level struct {
	// Price is 0 to 1 per share, Size in shares.
	Price, Size Decimal
}

// Book is a token's order book.
type Book struct {
	TokenID string
	// Bids run from the highest price, Asks from the lowest.
	Bids, Asks []Level
	// Spread is the venue's figure, else best ask − best bid; nil when a side is empty.
	Spread    *Decimal
	Timestamp time.Time
	// Epoch and Seq number the book's states; Seq is 0 where the venue gives none, and comparable within one Epoch only.
	Epoch string
	Seq   uint64
	Hash  string
	// Depth is the number of levels that were asked for on each side.
	Depth int
	// Rendered holds the JSON texts of the sides. Copies share it; a book with other levels needs its own. It may be nil.
	Rendered *Rendered
}

// Rendered is the place where the executor keeps the JSON texts of a book's sides. It is safe for concurrent use.
type Rendered struct {
	// Last is the newest text, in a type of the executor.
	Last atomic.Value
	// Count is the number of renderings, as far as the executor counts them.
	Count atomic.Uint32
}

// RenderedBytes returns the greatest size in bytes of the texts of a book with so many levels a side.
func RenderedBytes(levels int) int { return min(1<<10+160*levels, 16<<10) }

// Covers reports whether the book can answer for depth levels a side: it was asked for as many, or is whole because
// both sides have fewer levels than were asked for.
func (b *Book) Covers(depth int) bool {
	return depth <= b.Depth || len(b.Bids) < b.Depth && len(b.Asks) < b.Depth
}

// Cut returns the book with at most depth levels a side. It shares the levels.
func (b *Book) Cut(depth int) *Book {
	if len(b.Bids) <= depth && len(b.Asks) <= depth {
		return b
	}
	c := *b
	c.Bids, c.Asks = cut(b.Bids, depth), cut(b.Asks, depth)
	c.Depth = depth
	return &c
}

// Midpoint returns the mean of best bid and best ask, or nil when a side is empty.
func (b *Book) Midpoint() *Decimal { return midpoint(best(b.Bids), best(b.Asks)) }

// Width returns best ask − best bid, or nil when a side is empty.
func (b *Book) Width() *Decimal { return width(best(b.Bids), best(b.Asks)) }

func best(levels []Level) *Decimal {
	if len(levels) == 0 {
		return nil
	}
	return &levels[0].Price
}

func cut(levels []Level, depth int) []Level {
	if len(levels) > depth {
		return levels[:depth:depth]
	}
	return levels
}

func midpoint(bid, ask *Decimal) *Decimal {
	if bid == nil || ask == nil {
		return nil
	}
	half := NewDecimal(5, -1)
	m := bid.Add(*ask).Mul(half).Reduce()
	return &m
}

func width(bid, ask *Decimal) *Decimal {
	if bid == nil || ask == nil {
		return nil
	}
	w := ask.Sub(*bid).Reduce()
	return &w
}

// PricePoint is one point of a token's price history.
type PricePoint struct {
	Timestamp time.Time
	Price     Decimal
	// Volume is nil where the venue gives none.
	Volume *Decimal
}

// PriceHistory is a token's prices over inclusive UTC days, oldest first.
type PriceHistory struct {
	TokenID  string
	From, To Date
	Points   []PricePoint
	LeftOut  LeftOut
}

// Include adds a market to an event that is being put together, and what it contributes to span and volume.
func (e *Event) Include(m *Market) {
	e.Markets = append(e.Markets, m)
	if !m.StartsAt.IsZero() && (e.StartsAt.IsZero() || m.StartsAt.Before(e.StartsAt)) {
		e.StartsAt = m.StartsAt
	}
	if m.EndsAt.After(e.EndsAt) {
		e.EndsAt = m.EndsAt
	}
	if m.Volume != nil {
		sum := *m.Volume
		if e.Volume != nil {
			sum = e.Volume.Add(sum)
		}
		e.Volume = &sum
	}
}

// BookSideDelta returns what turns one side of a book into another, best first: levels that are new or have another size,
// and with size 0 those that are gone. Both sides are sorted best first.
func BookSideDelta(from, to []Level, side OrderSide) []Level {
	delta := []Level{}
	for i, j := 0, 0; i < len(from) || j < len(to); {
		order := 0
		switch {
		case i == len(from):
			order = 1
		case j == len(to):
			order = -1
		default:
			if order = from[i].Price.Cmp(to[j].Price); side == SideBuy {
				order = -order
			}
		}
		switch {
		case order < 0:
			delta = append(delta, Level{Price: from[i].Price})
			i++
		case order > 0:
			delta = append(delta, to[j])
			j++
		default:
			if from[i].Size.Cmp(to[j].Size) != 0 {
				delta = append(delta, to[j])
			}
			i++
			j++
		}
	}
	return delta
}

// With returns the market after a change that the stream reports. A RESOLVED change sets the status that it states, and does
// not end a cancelled market again. It sets winners and losers only if its winner is one of the outcomes.
func (m *Market) With(c MarketChange) *Market {
	next := *m
	resolved := c.Kind == "RESOLVED"
	switch {
	case resolved && m.Status == StatusCancelled:
	case c.Status != "":
		next.Status, next.StatusRaw = c.Status, c.StatusRaw
	case resolved:
		next.Status, next.StatusRaw = StatusResolved, string(StatusResolved)
	}
	if !resolved || next.Status != StatusResolved || m.Winner() != nil {
		return &next
	}
	winner := m.OutcomeByToken(c.WinningTokenID)
	if winner == nil {
		winner = m.OutcomeByLabel(c.Outcome)
	}
	label := c.Outcome
	if winner != nil {
		label = winner.Label
		next.Outcomes = slices.Clone(m.Outcomes)
		for i := range next.Outcomes {
			if next.Outcomes[i].Winner = &lost; &m.Outcomes[i] == winner {
				next.Outcomes[i].Winner = &won
			}
		}
	}
	if label != "" {
		var r Resolution
		if m.Resolution != nil {
			r = *m.Resolution
		}
		r.Outcome = label
		next.Resolution = &r
	}
	return &next
}
