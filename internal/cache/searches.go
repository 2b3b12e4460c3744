package cache

import (
	"oddsgraph/internal/market/queries"
)

// Searches returns the source of pages of market searches.
func (c *Cache) Searches() Source[queries.SearchKey, queries.SearchPage] { return c.searches }
