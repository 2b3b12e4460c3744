package limits

import "oddsgraph/graph/sdl"

// Published returns the cost of a field, such as Query.market, for the published schema. Reads that fields share, and values
// that come with others, are counted again.
func Published(field string) sdl.Cost {
	w := table[field]
	return sdl.Cost{Once: w.needs.points(), Each: 1 + w.each.points(), Items: w.items.published(), Page: w.page.published()}
}

func (q quantity) published() sdl.Size { return sdl.Size{Argument: q.argument, Fixed: q.fixed} }
