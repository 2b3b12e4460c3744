package wire

import (
	"slices"
	"strings"
	"unicode"
)

// Field is a property of an object, with all names that venues use for the property.
type Field struct {
	names    []string
	interned bool
}

// NewField returns a field. The first name is that of the venue API in docs/venues/generic.md. Other venues use the other names.
// The field also accepts each name in snake case.
func NewField(names ...string) (f Field) {
	for _, name := range names {
		for _, form := range []string{name, snakeCase(name)} {
			if !slices.Contains(f.names, form) {
				f.names = append(f.names, form)
			}
		}
	}
	return f
}

// Interned returns a copy of the field whose texts are interned; see market.Intern.
func (f Field) Interned() Field {
	f.interned = true
	return f
}

// Names returns the names of the field. The slice must not be changed.
func (f Field) Names() []string { return f.names }

// String returns the first name of the field.
func (f Field) String() string { return f.names[0] }

// snakeCase returns a name in snake case: market_id for marketId and for marketID.
func snakeCase(camel string) string {
	var b strings.Builder
	last := '_'
	for _, r := range camel {
		if unicode.IsUpper(r) && last != '_' && !unicode.IsUpper(last) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}

// Of looks for the names of the field in order, and returns the first member of the object that is not null. If there is no such
// member, Of returns the zero Value.
func (f Field) Of(object Value) Value {
	for _, name := range f.names {
		if v := object.Member(name); !v.IsNull() {
			return v
		}
	}
	return Value{}
}

// PresentIn reports whether the object has a member with one of the names. The member may be null.
func (f Field) PresentIn(object Value) bool {
	return slices.ContainsFunc(f.names, func(name string) bool { return object.Member(name).Kind() != Missing })
}

// The fields that REST responses and frames of the stream share.
var (
	FieldTokenID   = NewField("tokenId", "assetId", "clobTokenId").Interned()
	FieldMarketID  = NewField("marketId", "conditionId", "market").Interned()
	FieldEpoch     = NewField("epoch").Interned()
	FieldSeq       = NewField("seq", "sequence")
	FieldHash      = NewField("hash")
	FieldStatus    = NewField("status", "state").Interned()
	FieldCreatedAt = NewField("createdAt")
	FieldUpdatedAt = NewField("updatedAt", "lastUpdated")

	FieldPrice   = NewField("price", "p")
	FieldBestBid = NewField("bestBid", "bid")
	FieldBestAsk = NewField("bestAsk", "ask")
	FieldSpread  = NewField("spread")
	FieldBids    = NewField("bids")
	FieldAsks    = NewField("asks")
	// FieldSize is the size of a level of a book.
	FieldSize = NewField("size", "quantity", "amount")

	FieldSide = NewField("side").Interned()
	// FieldOutcome is the label of the outcome of a trade, order or position.
	FieldOutcome = NewField("outcome").Interned()
	// FieldShares is the size of a trade or position in shares.
	FieldShares = NewField("size", "quantity", "currentSize", "shares")
	// FieldUserToken is the id of the token of an order, trade or position.
	FieldUserToken = NewField("tokenId", "assetId", "clobTokenId", "asset").Interned()
	FieldTradeAt   = NewField("timestamp", "time", "ts", "matchTime", "createdAt")
	FieldTxHash    = NewField("transactionHash", "txHash")
)
