package queries

import (
	"cmp"
	"slices"
	"strings"

	"oddsgraph/internal/market"
)

// Category is a subject by which a venue classifies its markets.
type Category struct {
	// Name is the venue's spelling.
	Name string
	// IsTag reports that Name is a tag, because the venue has tags but no categories.
	IsTag bool
	// OpenMarkets is the number of open markets that were counted in this category.
	OpenMarkets int
	// Complete reports that OpenMarkets counts all open markets of the category. It is false if a part of the venue's list was not
	// read.
	Complete bool
}

// Categories contains at most maxCategories categories of a venue, sorted by OpenMarkets, greatest first.
type Categories struct{ List []Category }

const maxCategories = 100

// categoryCount counts open markets by category and by tag. It is not safe for concurrent use.
type categoryCount struct {
	seen             map[string]bool
	categories, tags map[string]*Category
}

// add counts markets. It skips markets that are not open, and markets that it has already counted.
func (c *categoryCount) add(markets []*market.Market) {
	for _, m := range markets {
		if m.Status != market.StatusOpen || c.seen[m.MarketID] {
			continue
		}
		c.seen[m.MarketID] = true
		if m.Category != "" {
			count(c.categories, m.Category, false)
		}
		for _, tag := range m.Tags {
			count(c.tags, tag, true)
		}
	}
}

// count adds a market to a category. Names that differ only in case are the same category.
func count(in map[string]*Category, name string, isTag bool) {
	key := strings.ToLower(name)
	if in[key] == nil {
		in[key] = &Category{Name: strings.Clone(name), IsTag: isTag}
	}
	in[key].OpenMarkets++
}

// result returns the categories with the most open markets, at most maxCategories of them. If no market has a category, it returns
// tags instead. The parameter complete reports that all open markets were added.
func (c *categoryCount) result(complete bool) []Category {
	counted := c.categories
	if len(counted) == 0 {
		counted = c.tags
	}
	list := make([]Category, 0, len(counted))
	for _, category := range counted {
		category.Complete = complete
		list = append(list, *category)
	}
	slices.SortFunc(list, func(a, b Category) int {
		return cmp.Or(b.OpenMarkets-a.OpenMarkets, cmp.Compare(a.Name, b.Name))
	})
	return slices.Clip(list[:min(len(list), maxCategories)])
}
