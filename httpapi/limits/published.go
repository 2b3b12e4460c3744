package limits

import "oddsgraph/graph/sdl"

// Published returns the cost of a field, such as Query.market, as the published schema states it. This cost can be too high: it
// includes reads that the field shares with other fields, and reads of values that a parent field has already read.
func Published(field string) sdl.Cost {
	w := table[field]
	return sdl.Cost{Once: w.needs.points(), Each: 1 + w.each.points(), Items: w.items.published(), Page: w.pageSize.published()}
}

func (q quantity) published() sdl.Size { return sdl.Size{Argument: q.argument, Fixed: q.fixed} }
