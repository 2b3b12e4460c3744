package model

import (
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/reads"
)

// Market is a market of the venue: a question with outcomes that are traded. Its methods return nil for values that the venue does
// not send.
type Market struct {
	*market.Market
	Meta reads.Meta
}

// IsNode marks Market as a Node.
func (Market) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (m Market) ID() string { return EncodeID(KindMarket, m.MarketID) }

// AppendID appends the result of ID.
func (m Market) AppendID(dst []byte) []byte { return AppendID(dst, KindMarket, m.MarketID) }

// Slug returns the readable name, or nil if the venue does not send it.
func (m Market) Slug() *string { return text(&m.Market.Slug) }

// Question returns the question, or nil if the venue does not send it.
func (m Market) Question() *string { return text(&m.Market.Question) }

// GroupItemTitle returns the label within the event.
func (m Market) GroupItemTitle() *string { return text(&m.Market.GroupItemTitle) }

// Image returns the picture's address.
func (m Market) Image() *string { return text(&m.Market.Image) }

// Category returns the venue's category.
func (m Market) Category() *string { return text(&m.Market.Category) }

// StatusRaw returns the status as the venue spells it.
func (m Market) StatusRaw() *string { return text(&m.Market.StatusRaw) }

// StartsAt returns the time when trading starts.
func (m Market) StartsAt() *time.Time { return instant(&m.Market.StartsAt) }

// EndsAt returns the time when trading ends.
func (m Market) EndsAt() *time.Time { return instant(&m.Market.EndsAt) }

// CreatedAt returns the time when the venue listed the market.
func (m Market) CreatedAt() *time.Time { return instant(&m.Market.CreatedAt) }

// UpdatedAt returns the time of the venue's last change to the market.
func (m Market) UpdatedAt() *time.Time { return instant(&m.Market.UpdatedAt) }

// Event returns the event of the market, with only the fields that the venue sends with a market. It returns nil if the market has
// no event.
func (m Market) Event() *Event {
	if m.EventID == "" {
		return nil
	}
	return &Event{EventID: m.EventID, EventSlug: m.EventSlug, EventTitle: m.EventTitle, EventCategory: m.Market.Category}
}

// Tokens returns the market's outcome tokens.
func (m Market) Tokens() []Token {
	tokens := make([]Token, len(m.Outcomes))
	for i := range m.Outcomes {
		tokens[i] = m.Token(&m.Outcomes[i])
	}
	return tokens
}

// Token returns the token of one of the market's outcomes.
func (m Market) Token(o *market.Outcome) Token {
	return Token{TokenID: o.TokenID, MarketID: m.MarketID, In: m.Market, Meta: m.Meta}
}

// Freshness returns the age of the market.
func (m Market) Freshness() Freshness { return freshness(m.Meta) }

// Event is a set of markets about one subject. Loaded is nil if the event was not read. In this case, resolvers read the event when
// a client selects a field that only Loaded contains.
type Event struct {
	EventID, EventSlug, EventTitle, EventCategory string

	Loaded *market.Event
	Meta   reads.Meta
}

// NewEvent returns an event that was read.
func NewEvent(r reads.Value[*market.Event]) *Event {
	return new(FoundEvent(r.Value, true, r.Meta))
}

// FoundEvent returns an event from the result of a search. whole reports whether e has all its fields.
func FoundEvent(e *market.Event, whole bool, meta reads.Meta) Event {
	out := Event{EventID: e.EventID, EventSlug: e.Slug, EventTitle: e.Title, EventCategory: e.Category, Meta: meta}
	if whole {
		out.Loaded = e
	}
	return out
}

// IsNode marks Event as a Node.
func (Event) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (e Event) ID() string { return EncodeID(KindEvent, e.EventID) }

// Slug returns the readable name, or nil if the venue does not send it.
func (e Event) Slug() *string { return text(&e.EventSlug) }

// Title returns the event's title, or nil if the venue does not send it.
func (e Event) Title() *string { return text(&e.EventTitle) }

// Category returns the event's category, or nil if the venue does not send it. An event that comes from a market has the category
// of this market.
func (e Event) Category() *string { return text(&e.EventCategory) }

// Category is a subject by which the venue classifies markets. The venue calls it a category or a tag.
type Category struct{ Topic queries.Category }

// Name returns the name as the venue spells it.
func (c Category) Name() string { return c.Topic.Name }

// Category returns the name if the topic is a category. It returns nil if the topic is a tag.
func (c Category) Category() *string {
	if c.Topic.IsTag {
		return nil
	}
	return &c.Topic.Name
}

// Tag returns the name if the topic is a tag. It returns nil if the topic is a category.
func (c Category) Tag() *string {
	if c.Topic.IsTag {
		return &c.Topic.Name
	}
	return nil
}

// OpenMarkets returns the number of open markets that were counted.
func (c Category) OpenMarkets() int { return c.Topic.OpenMarkets }

// Complete reports whether all open markets of the venue were counted.
func (c Category) Complete() bool { return c.Topic.Complete }

// Resolution is the result of a market.
type Resolution struct {
	*market.Resolution
	Market Market
}

// WinningToken returns the token of the winning outcome, or nil if the winner is unknown.
func (r Resolution) WinningToken() *Token {
	w := r.Market.Winner()
	if w == nil {
		return nil
	}
	return new(r.Market.Token(w))
}

// WinningOutcome returns the label of the winning outcome. If an outcome has a true winner flag, WinningOutcome returns the label
// of this outcome. Otherwise, it returns the label in the resolution. If both labels exist and differ only in case, it returns the
// label in the resolution. It returns nil if the market is not resolved, or if there is neither a flag nor a label.
func (r Resolution) WinningOutcome() *string {
	switch w := r.Market.Winner(); {
	case r.Market.Status != market.StatusResolved:
		return nil
	case w != nil && !strings.EqualFold(w.Label, r.Outcome):
		return text(&w.Label)
	}
	return text(&r.Outcome)
}

// ResolvedAt returns the time when the market was resolved.
func (r Resolution) ResolvedAt() *time.Time { return instant(&r.Resolution.ResolvedAt) }

// Source returns the source of the resolution, such as an oracle or a web page, or nil if the venue does not send it.
func (r Resolution) Source() *string { return text(&r.Resolution.Source) }

// Token is one outcome of a market.
type Token struct {
	TokenID string
	// MarketID is the id of the token's market. It is empty if the market is unknown.
	MarketID string
	// In is the market whose field returned the token. It is nil if no market returned the token. Meta is the Meta of In.
	In   *market.Market
	Meta reads.Meta
	// Preloaded contains the token's values from a subscription's event. It is nil if no event contained the token.
	Preloaded *Preloaded
}

// Leg returns the token's book and market from an event of a question. It returns nil for all other tokens.
func (t Token) Leg() *reads.Leg {
	if t.Preloaded == nil {
		return nil
	}
	return t.Preloaded.Leg
}

// IsNode marks Token as a Node.
func (Token) IsNode() {}

// ID returns the global id without the prefix that IDPrefix returns.
func (t Token) ID() string { return EncodeID(KindToken, t.TokenID) }

// AppendID appends the result of ID.
func (t Token) AppendID(dst []byte) []byte { return AppendID(dst, KindToken, t.TokenID) }

// TokenPrice is the price of a token.
type TokenPrice struct {
	Quote *market.Price
	Meta  reads.Meta
}

// ID returns a key for the caches of clients. The key is the same for every read of the price.
func (p TokenPrice) ID() string { return EncodeID("TokenPrice", p.Quote.TokenID) }

// AppendID appends the result of ID.
func (p TokenPrice) AppendID(dst []byte) []byte { return AppendID(dst, "TokenPrice", p.Quote.TokenID) }

// TokenID returns the priced token's id.
func (p TokenPrice) TokenID() string { return p.Quote.TokenID }

// Price returns the price per share.
func (p TokenPrice) Price() market.Decimal { return p.Quote.Price }

// Basis says how the price was made.
func (p TokenPrice) Basis() market.PriceBasis { return p.Quote.Basis }

// Timestamp returns the venue's timestamp, or nil if the venue sends none.
func (p TokenPrice) Timestamp() *time.Time { return instant(&p.Quote.Timestamp) }

// Token returns the priced token.
func (p TokenPrice) Token() *Token { return &Token{TokenID: p.Quote.TokenID} }

// Freshness returns the age of the price.
func (p TokenPrice) Freshness() Freshness { return freshness(p.Meta) }

// Spread contains the best prices of a token's book and their difference.
type Spread struct {
	Top  *market.Spread
	Meta reads.Meta
}

// ID returns a key for the caches of clients. The key is the same for every read of the spread.
func (s Spread) ID() string { return EncodeID("Spread", s.Top.TokenID) }

// AppendID appends the result of ID.
func (s Spread) AppendID(dst []byte) []byte { return AppendID(dst, "Spread", s.Top.TokenID) }

// TokenID returns the token's id.
func (s Spread) TokenID() string { return s.Top.TokenID }

// BestBid returns the highest bid.
func (s Spread) BestBid() *market.Decimal { return s.Top.BestBid }

// BestAsk returns the lowest ask.
func (s Spread) BestAsk() *market.Decimal { return s.Top.BestAsk }

// Spread returns the best ask minus the best bid.
func (s Spread) Spread() *market.Decimal { return s.Top.Spread }

// Midpoint returns the mean of the best bid and the best ask.
func (s Spread) Midpoint() *market.Decimal { return s.Top.Midpoint() }

// Basis says from which endpoint of the venue the values come.
func (s Spread) Basis() market.SpreadBasis { return s.Top.Basis() }

// Token returns the token.
func (s Spread) Token() *Token { return &Token{TokenID: s.Top.TokenID} }

// Freshness returns the age of the spread.
func (s Spread) Freshness() Freshness { return freshness(s.Meta) }

// Orderbook is a token's book, cut to a depth.
type Orderbook struct {
	Book *market.Book
	Meta reads.Meta
}

// TokenID returns the token's id.
func (b Orderbook) TokenID() string { return b.Book.TokenID }

// Token returns the token.
func (b Orderbook) Token() *Token { return &Token{TokenID: b.Book.TokenID} }

// Bids returns the buy levels, best first.
func (b Orderbook) Bids() []market.Level { return b.Book.Bids.Levels() }

// Asks returns the sell levels, best first.
func (b Orderbook) Asks() []market.Level { return b.Book.Asks.Levels() }

// Spread returns the best ask minus the best bid.
func (b Orderbook) Spread() *market.Decimal { return b.Book.Spread }

// Midpoint returns the mean of the best bid and the best ask.
func (b Orderbook) Midpoint() *market.Decimal { return b.Book.Midpoint() }

// Sequence returns an opaque text that identifies the state of the book, or nil if the venue sends no sequence numbers.
func (b Orderbook) Sequence() *string {
	if b.Book.Seq == 0 {
		return nil
	}
	return new(b.Book.Epoch + ":" + strconv.FormatUint(b.Book.Seq, 10))
}

// Hash returns the venue's digest of the book, or nil if the venue sends no digest.
func (b Orderbook) Hash() *string { return text(&b.Book.Hash) }

// Freshness returns the age of the book.
func (b Orderbook) Freshness() Freshness { return freshness(b.Meta) }

// PriceHistory contains a token's prices. From and To are the first and the last UTC day.
type PriceHistory struct {
	From, To market.Date
	Points   []market.PricePoint
	Meta     reads.Meta
}

// Freshness returns the age of the history.
func (h PriceHistory) Freshness() Freshness { return freshness(h.Meta) }

// FillEstimate is the estimated result of a market order.
type FillEstimate struct {
	market.Fill
	Meta reads.Meta
}

// Freshness returns the age of the book from which the fill was estimated.
func (f FillEstimate) Freshness() Freshness { return freshness(f.Meta) }
