package market

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Market is a question with its outcomes.
type Market struct {
	MarketID, Slug, Question, GroupItemTitle string
	Description, Image, Category             string
	Tags                                     []string
	Status                                   Status
	StatusRaw                                string
	// AcceptingOrders is nil if the venue does not send it.
	AcceptingOrders              *bool
	StartsAt, EndsAt             time.Time
	Volume, Volume24h, Liquidity *Decimal
	// PriceChange24h is the change of the first outcome's price in 24 hours. It is nil if the venue does not send it.
	PriceChange24h                 *Decimal
	TickSize, MinOrderSize         *Decimal
	EventID, EventSlug, EventTitle string
	// Outcomes are in the venue's order.
	Outcomes   []Outcome
	Resolution *Resolution
	// CreatedAt is the time when the venue listed the market. It is zero if the venue does not send the time.
	CreatedAt, UpdatedAt time.Time
	// Summary reports that the market comes from a list of the venue, so Description and Resolution may be missing.
	Summary bool
}

// Outcome is one outcome of a market and its token.
type Outcome struct {
	// TokenID is empty if the venue does not send the token.
	TokenID, Label string
	// Price is the price that the venue's response for the market contained, or nil if it contained no price.
	Price *Decimal
	// Winner is the venue's winner flag. It is nil if the venue did not send the flag. It is also nil if the flags of all outcomes
	// are false.
	Winner *bool
}

// Resolution is the result of a market.
type Resolution struct {
	// Outcome is the winning label. It is empty if the venue does not send it.
	Outcome    string
	ResolvedAt time.Time
	Source     string
}

// OutcomeByToken returns the outcome of a token. It returns nil if no outcome has the token or tokenID is empty.
func (m *Market) OutcomeByToken(tokenID string) *Outcome {
	for i := range m.Outcomes {
		if tokenID != "" && m.Outcomes[i].TokenID == tokenID {
			return &m.Outcomes[i]
		}
	}
	return nil
}

// OutcomeByLabel returns the outcome with the label, ignoring case. It returns nil if no outcome or more than one has the label.
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

// Winner returns the winning outcome, or nil if the market is not resolved or the winner is unknown. An outcome with a true winner
// flag has won. If no flag is true, the outcome with the label of the resolution has won.
func (m *Market) Winner() *Outcome {
	if m.Status != StatusResolved {
		return nil
	}
	if i := slices.IndexFunc(m.Outcomes, func(o Outcome) bool { return o.Winner != nil && *o.Winner }); i >= 0 {
		return &m.Outcomes[i]
	}
	if m.Resolution != nil && m.Resolution.Outcome != "" {
		return m.OutcomeByLabel(m.Resolution.Outcome)
	}
	return nil
}

// Won returns a pointer to true if the outcome has won, and a pointer to false if it has lost. It returns nil if Winner returns nil
// or o is nil.
func (m *Market) Won(o *Outcome) *bool {
	w := m.Winner()
	if o == nil || w == nil {
		return nil
	}
	if w.TokenID == o.TokenID && strings.EqualFold(w.Label, o.Label) || // all tokens may be empty, and two labels may be equal
		o.Winner != nil && *o.Winner {
		return &won
	}
	return &lost
}

// SettlementPrice returns 1 if the outcome has won, 0 if it has lost, and nil if Won returns nil.
func (m *Market) SettlementPrice(o *Outcome) *Decimal {
	switch m.Won(o) {
	case nil:
		return nil
	case &won:
		return &one
	}
	return &zero
}

// won and lost are the booleans to which the result of Won points.
var won, lost = true, false

var zero, one = NewDecimal(0, 0), NewDecimal(1, 0)

// With returns a copy of the market to which a change from the stream is applied. A RESOLVED change has no effect on a cancelled
// market, and replaces neither a known winner nor a known time of the resolution. If an outcome has the winning token or label, the
// change sets the winner flags of all outcomes.
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
	if c.TickSize != nil {
		next.TickSize = c.TickSize
	}
	if !resolved || next.Status != StatusResolved {
		return &next
	}
	known, label := m.Winner(), c.Outcome
	if known != nil {
		label = known.Label
	} else if winner := cmp.Or(m.OutcomeByToken(c.WinningTokenID), m.OutcomeByLabel(c.Outcome)); winner != nil {
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
		if known == nil || r.Outcome == "" {
			r.Outcome = label
		}
		if r.ResolvedAt.IsZero() {
			r.ResolvedAt = c.At
		}
		next.Resolution = &r
	}
	return &next
}

// LeftOut contains the errors of the rows that are missing in a list because they could not be read. The message of an error says
// which row of the venue's response could not be read. After ten such errors, one last error says how many further rows could not
// be read.
type LeftOut []error

// Event is a group of markets.
type Event struct {
	EventID, Slug, Title string
	// StartsAt is the earliest start, and EndsAt the latest end, of the markets. A time is zero if no market has it.
	StartsAt, EndsAt time.Time
	// Image and Description are empty if the venue does not send them. If the venue sends no category for the event, Category is
	// the first category that a market of the event has.
	Image, Description, Category string
	// Volume and Volume24h are sums over the markets. A sum is nil if no market has the figure.
	Volume, Volume24h *Decimal
	// Markets are summaries in the venue's order.
	Markets []*Market
	// Exclusive reports whether exactly one of the markets can resolve to its first outcome. It is nil if the venue sends no such
	// flag.
	Exclusive *bool
	// LeftOut contains the errors of the markets that could not be read. The volumes do not include these markets.
	LeftOut LeftOut
}

// Include adds a market to an event, and updates start, end, category and volumes. Call it only before other goroutines can read
// the event.
func (e *Event) Include(m *Market) {
	e.Markets = append(e.Markets, m)
	if !m.StartsAt.IsZero() && (e.StartsAt.IsZero() || m.StartsAt.Before(e.StartsAt)) {
		e.StartsAt = m.StartsAt
	}
	if m.EndsAt.After(e.EndsAt) {
		e.EndsAt = m.EndsAt
	}
	if e.Category == "" {
		e.Category = m.Category
	}
	e.Volume, e.Volume24h = plus(e.Volume, m.Volume), plus(e.Volume24h, m.Volume24h)
}

// plus returns a + b. If one number is nil, plus returns the other number. If both are nil, it returns nil.
func plus(a, b *Decimal) *Decimal {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(a.Add(*b))
}

// statusOrder is the order in which Event.Status looks for a status among the markets of an event.
var statusOrder = []Status{StatusOpen, StatusUpcoming, StatusDisputed, StatusClosed, StatusResolved, StatusCancelled}

// Status returns the first status in statusOrder that one of the markets has. So an event is open while one of its markets is open.
// Status returns StatusUnknown if the event has no markets or the status of every market is unknown.
func (e *Event) Status() Status {
	for _, s := range statusOrder {
		if slices.ContainsFunc(e.Markets, func(m *Market) bool { return m.Status == s }) {
			return s
		}
	}
	return StatusUnknown
}

// OutcomeOf returns the outcome of a position. It returns nil if no outcome matches or m is nil.
func (m *Market) OutcomeOf(p *Position) *Outcome {
	switch {
	case m == nil:
		return nil
	case p.TokenID != "":
		return m.OutcomeByToken(p.TokenID)
	default:
		return m.OutcomeByLabel(p.Outcome)
	}
}

// Redeems reports whether a position can be redeemed: the market is resolved and the outcome of the position has won. The result is
// false if the market has any other known status. The result is nil if m is nil, the status is unknown, or Won returns nil for the
// outcome.
func (m *Market) Redeems(p *Position) *bool {
	switch {
	case m == nil || m.Status == StatusUnknown:
		return nil
	case m.Status != StatusResolved:
		return new(bool)
	default:
		return m.Won(m.OutcomeOf(p))
	}
}

// MarketChange is an update of a market from the stream. A field is empty if the update does not contain it.
type MarketChange struct {
	// Kind is CREATED, STATUS, METADATA, TICK_SIZE, RESOLVED or another text of the venue, in upper case.
	Kind           string
	Status         Status
	StatusRaw      string
	Outcome        string
	WinningTokenID string
	// TickSize is the new tick size of a TICK_SIZE change. At is the venue's time of the change.
	TickSize *Decimal
	At       time.Time
}
