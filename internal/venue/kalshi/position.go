package kalshi

import (
	"time"

	"oddsgraph/internal/venue/rest"
)

// position is the start of a page in a list that continues in the archive. Kalshi moves trades, and settled markets, to an archive
// when they are about three months old.
type position struct {
	Archived bool `json:"a,omitempty"`
	// Oldest is the time of the oldest trade on the earlier pages of the list. It is zero if there is none, and in lists of markets.
	Oldest time.Time `json:"o,omitzero"`
	// Cursor is the venue's cursor. It is empty at the start of the list, and at the start of the archive.
	Cursor string `json:"c,omitempty"`
}

// next returns the token of the next page, or "" if there is no next page. cursor is the venue's cursor for the next page, or "" at
// the end of the list or of the archive.
func (p position) next(cursor string) string {
	if cursor == "" && p.Archived {
		return ""
	}
	p.Archived, p.Cursor = p.Archived || cursor == "", cursor
	return rest.PageToken(p)
}
