package limits

import "oddsgraph/graph/sdl"

// Published returns the cost of a field, such as Query.market, for the published schema. The cost of each field includes reads that
// it shares with other fields, and values that come with other values.
func Published(field string) sdl.Cost {
	w := table[field]
	return sdl.Cost{Once: w.needs.points(), Each: 1 + w.each.points(), Items: w.items.published(), Page: w.page.published()}
}

func (q quantity) published() sdl.Size { return sdl.Size{Argument: q.argument, Fixed: q.fixed} }
