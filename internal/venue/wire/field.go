package wire

import (
	"slices"
	"strings"
)

// Field is one piece of an answer and the names that venues have for it, the contract's first.
type Field struct {
	names []string
	// shared tells that the texts are interned.
	shared bool
}

// Exactly returns a field that is spelt in these ways and no others.
func Exactly(names ...string) Field { return Field{}.Or(names...) }

// Names returns a field; every name is also known in snake case.
func Names(camel ...string) Field {
	var f Field
	for _, name := range camel {
		f = f.Or(name)
		if s := snake(name); s != name {
			f = f.Or(s)
		}
	}
	return f
}

// Or returns the field with more names.
func (f Field) Or(names ...string) Field {
	f.names = append(slices.Clip(f.names), names...)
	return f
}

// Shared returns the field with texts that share memory where they are equal, as Intern has it.
func (f Field) Shared() Field {
	f.shared = true
	return f
}

// Names returns the names of the field, the contract's first.
func (f Field) Names() []string { return f.names }

// String returns the contract's name for the field.
func (f Field) String() string { return f.names[0] }

func snake(camel string) string {
	var b strings.Builder
	for _, r := range camel {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Of returns the first member, in the order of the names, that is there and not null.
func (f Field) Of(object Value) Value {
	for _, name := range f.names {
		if v := object.Member(name); !v.IsNull() {
			return v
		}
	}
	return Value{}
}

// In tells whether the field is there, be it null.
func (f Field) In(object Value) bool {
	return slices.ContainsFunc(f.names, func(n string) bool { return object.Member(n).Kind() != Missing })
}

// The fields that answers and frames share.
var (
	FieldTokenID   = Names("tokenId", "assetId", "clobTokenId").Shared()
	FieldMarketID  = Names("marketId", "conditionId", "market").Shared()
	FieldEpoch     = Names("epoch").Shared()
	FieldSeq       = Names("seq", "sequence")
	FieldHash      = Names("hash")
	FieldStatus    = Names("status", "state").Shared()
	FieldUpdatedAt = Names("updatedAt", "lastUpdated")

	FieldPrice   = Names("price", "p")
	FieldBestBid = Names("bestBid", "bid")
	FieldBestAsk = Names("bestAsk", "ask")
	FieldSpread  = Names("spread")
	FieldBids    = Names("bids")
	FieldAsks    = Names("asks")
	// FieldSize is the size of a level.
	FieldSize = Names("size", "quantity", "amount")

	FieldSide = Names("side").Shared()
	// FieldLabel is the outcome that a trade, order or position is of.
	FieldLabel = Names("outcome").Shared()
	// FieldHeld is the size of a trade or position.
	FieldHeld = Names("size", "quantity", "currentSize", "shares")
	// FieldUserToken is the token of an order, trade or position.
	FieldUserToken = FieldTokenID.Or("asset")
	FieldTradeAt   = Names("timestamp", "time", "ts", "matchTime", "createdAt")
	FieldTxHash    = Names("transactionHash", "txHash")
)
