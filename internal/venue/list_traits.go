package venue

import (
	"sync"
	"time"
)

// listTraits is what the client has learned of one of the venue's lists. The zero value knows nothing. It is safe for
// concurrent use.
type listTraits struct {
	mu sync.Mutex
	// isPaged: the list had several pages. refusesLimit: the venue refuses a page size.
	isPaged, refusesLimit bool
	// countIsTotal: the field count was once greater than a page, so it counts all rows. Other venues count the rows of the
	// page.
	countIsTotal bool
	// wholeUntil ends the time in which lists count as complete, because the venue refused or ignored an offset.
	wholeUntil time.Time
	// maxRows is the greatest number of rows in a page, without a requested page size and with one. A shorter page is
	// complete. The numbers are valid until sizesUntil.
	maxRows    map[bool]int
	sizesUntil time.Time
	// plainUntil ends the time in which no optional parameter is sent, because the venue refused one.
	plainUntil time.Time
}

// plain reports whether optional parameters are omitted.
func (h *listTraits) plain(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.plainUntil)
}

// refuseOptions records that the venue refuses an optional parameter.
func (h *listTraits) refuseOptions(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plainUntil = now.Add(relearnAfter)
}

// isWhole reports whether a list is complete if only its length suggests another page.
func (h *listTraits) isWhole(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.wholeUntil)
}

// sendsLimit reports whether requests for the list have a page size.
func (h *listTraits) sendsLimit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isPaged && !h.refusesLimit
}

// refuseLimit records that the venue refuses a page size.
func (h *listTraits) refuseLimit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusesLimit = true
}

// mayBeCut reports whether the venue may have cut a page of n rows. The page does not say whether another one follows.
func (h *listTraits) mayBeCut(now time.Time, t pageInfo, at pageStart, n int, limited bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case limited && n >= wholeListLimit:
		return true
	case n%roundCount != 0, now.Before(h.wholeUntil), n < h.maxRows[limited] && now.Before(h.sizesUntil):
		return false
	}
	return !t.countsPage || !at.isStart() || !h.countIsTotal
}

// observe learns from a page of n rows.
func (h *listTraits) observe(now time.Time, t pageInfo, n int, limited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !now.Before(h.sizesUntil) {
		h.maxRows, h.sizesUntil = map[bool]int{}, now.Add(relearnAfter)
	}
	h.maxRows[limited] = max(h.maxRows[limited], n)
	h.learnCount(t)
}

// learnCount learns what the venue counts. The lock is held.
func (h *listTraits) learnCount(t pageInfo) {
	switch {
	case t.countIsTotal:
		h.countIsTotal = true
	case t.countsPage && !t.next.isStart() && !t.guessed:
		h.countIsTotal = false
	}
}

// trustCount ends the list at a first page with as many rows as count says, if count is known to count all rows.
func (h *listTraits) trustCount(t *pageInfo, at pageStart) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.learnCount(*t); t.guessed && t.countsPage && at.isStart() && h.countIsTotal {
		t.next, t.guessed = pageStart{}, false
	}
}

// setPaged records that the list had several pages.
func (h *listTraits) setPaged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isPaged = true
}

// ignoresOffset records that the venue refused an offset or responded with the same rows: its lists are complete.
func (h *listTraits) ignoresOffset(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wholeUntil = now.Add(relearnAfter)
}
