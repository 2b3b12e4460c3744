package kalshi

import (
	"strconv"
	"strings"
	"time"
)

// position is the position of a page in a list that continues in the archive. Kalshi moves trades, and settled markets, to an
// archive when they are about three months old.
type position struct {
	archived bool
	// oldest is the time of the oldest trade on the earlier pages of the list. It is zero if there is none, and in lists of
	// markets.
	oldest time.Time
	// cursor is the venue's cursor. It is empty at the start of the list, and at the start of the archive.
	cursor string
}

const (
	// maxCursor is the greatest length in bytes of the text of a position. It contains one of Kalshi's cursors.
	maxCursor = 1024
	// pageOfList and pageOfArchive are the first parts of the text of a position.
	pageOfList    = "list"
	pageOfArchive = "archive"
)

// String returns the position as a cursor of this service.
func (p position) String() string {
	kind, micros := pageOfList, ""
	if p.archived {
		kind = pageOfArchive
	}
	if !p.oldest.IsZero() {
		micros = strconv.FormatInt(p.oldest.UnixMicro(), 10) // Kalshi's times have microseconds
	}
	return strings.Join([]string{kind, micros, p.cursor}, ",")
}

// parsePosition reads the result of String. The empty text is the start of the list. If the text has another form, ok is false.
func parsePosition(text string) (p position, ok bool) {
	if text == "" {
		return p, true
	}
	parts := strings.SplitN(text, ",", 3)
	if len(text) > maxCursor || len(parts) != 3 || parts[0] != pageOfList && parts[0] != pageOfArchive {
		return p, false
	}
	p = position{archived: parts[0] == pageOfArchive, cursor: parts[2]}
	if parts[1] == "" {
		return p, true
	}
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	p.oldest = time.UnixMicro(micros).UTC()
	return p, err == nil
}

// next returns the position of the next page as text, or "" if there is no next page. cursor is the venue's cursor for the next
// page, or "" at the end of the list or of the archive.
func (p position) next(cursor string) string {
	if cursor == "" && p.archived {
		return ""
	}
	p.archived, p.cursor = p.archived || cursor == "", cursor
	return p.String()
}
