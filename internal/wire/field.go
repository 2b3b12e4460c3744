package wire

import (
	"slices"
	"strings"
)

// Field is one piece of an answer and the names that venues have for it, the contract's first.
type Field []string

// Names returns a field; every name is also known in snake case.
func Names(camel ...string) Field {
	f := make(Field, 0, 2*len(camel))
	for _, name := range camel {
		f = append(f, name)
		if s := snake(name); s != name {
			f = append(f, s)
		}
	}
	return f
}

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

// Of returns the first value that is there and not null.
func (f Field) Of(m map[string]any) any {
	for _, name := range f {
		if v := m[name]; v != nil {
			return v
		}
	}
	return nil
}

// In tells whether the field is there, be it null.
func (f Field) In(m map[string]any) bool {
	return slices.ContainsFunc(f, func(name string) bool {
		_, ok := m[name]
		return ok
	})
}

// The fields that answers and frames share.
var (
	FieldTokenID   = Names("tokenId", "assetId", "clobTokenId")
	FieldMarketID  = Names("marketId", "conditionId", "market")
	FieldEpoch     = Names("epoch")
	FieldSeq       = Names("seq", "sequence")
	FieldHash      = Names("hash")
	FieldStatus    = Names("status", "state")
	FieldUpdatedAt = Names("updatedAt", "lastUpdated")

	FieldPrice   = Names("price", "p")
	FieldBestBid = Names("bestBid", "bid")
	FieldBestAsk = Names("bestAsk", "ask")
	FieldSpread  = Names("spread")
	FieldBids    = Names("bids")
	FieldAsks    = Names("asks")
	// FieldSize is the size of a level.
	FieldSize = Names("size", "quantity", "amount")

	FieldSide = Names("side")
	// FieldLabel is the outcome that a trade, order or position is of.
	FieldLabel = Names("outcome")
	// FieldHeld is the size of a trade or position.
	FieldHeld = Names("size", "quantity", "currentSize", "shares")
	// FieldUserToken is the token of an order, trade or position.
	FieldUserToken = append(slices.Clone(FieldTokenID), "asset")
	FieldTradeAt   = Names("timestamp", "time", "ts", "matchTime", "createdAt")
	FieldTxHash    = Names("transactionHash", "txHash")
)
