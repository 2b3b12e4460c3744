package wire

import (
	"errors"
	"slices"

	"oddsgraph/internal/market"
)

// Levels reads the bids and the asks of a book, best level first. It adds up the sizes of levels with the same price and leaves out
// levels of size 0. If a side is missing or any level is unreadable, the row is bad. Levels accepts a book whose best bid is above
// its best ask.
func (r *Row) Levels() (market.Side, market.Side) {
	bids, asks := r.LevelsOf(FieldBids), r.LevelsOf(FieldAsks)
	slices.SortFunc(bids, func(x, y market.Level) int { return y.Price.Cmp(x.Price) })
	slices.SortFunc(asks, func(x, y market.Level) int { return x.Price.Cmp(y.Price) })
	return market.NewSide(r.Merge(bids)), market.NewSide(r.Merge(asks))
}

// LevelsOf reads the levels in the field f, in the order of the venue, without those of size 0. If f is null, the side is empty,
// because servers in Go send null for an empty slice. If f is missing, or neither null nor a list of readable levels, the row is bad.
func (r *Row) LevelsOf(f Field) []market.Level {
	v := r.Of(f)
	list, ok := v.List()
	if !ok {
		if empty := v.IsNull() && r.Has(f); !empty {
			r.Fail(f, "is not a list")
		}
		return nil
	}
	levels := make([]market.Level, 0, len(list))
	for _, v := range list {
		level, err := r.level(v)
		if err != nil {
			r.Fail(f, "has a bad level: "+err.Error())
			return nil
		}
		if !level.Size.IsZero() {
			levels = append(levels, level)
		}
	}
	return levels
}

// level reads an object with a price and a size, or a list that begins with a price and a size.
func (r *Row) level(v Value) (market.Level, error) {
	in := r.Child(v)
	if v.Kind() == List {
		pair := v.Elements()
		if len(pair) < 2 {
			return market.Level{}, errors.New("a pair without size")
		}
		in = &Row{Note: r.Note}
		in.Set(FieldPrice, pair[0])
		in.Set(FieldSize, pair[1])
	}
	level := market.Level{Price: in.Price(FieldPrice), Size: in.Size(FieldSize)}
	return level, in.Err
}

// Merge joins neighbouring levels with the same price and adds up their sizes. The result uses the memory of levels.
func (r *Row) Merge(levels []market.Level) []market.Level {
	out := levels[:0]
	for _, level := range levels {
		if last := len(out) - 1; last >= 0 && out[last].Price.Cmp(level.Price) == 0 {
			out[last].Size = out[last].Size.Add(level.Size)
			r.Note("repeated level")
			continue
		}
		out = append(out, level)
	}
	return out
}
