package generic

import (
	"sync"
	"time"
)

// listTraits is what the client has learned about one of the venue's lists. The zero value means that nothing is known. listTraits
// is safe for concurrent use.
type listTraits struct {
	// mu guards the fields below. learnCount is called with it held.
	mu sync.Mutex
	// isPaged reports that the list once had several pages. refusesLimit reports that the venue refuses a page size.
	isPaged, refusesLimit bool
	// countIsTotal reports that the venue's JSON field "count" contains the number of rows on all pages. Other venues send the
	// number of rows on the page in this field.
	countIsTotal bool
	// Before the time wholeUntil, the first page counts as the whole list, because the venue has refused or ignored an offset.
	wholeUntil time.Time
	// maxRows[true] is the greatest number of rows on a page that was requested with a page size. maxRows[false] is the same for pages
	// that were requested without a page size. A page with fewer rows counts as the last page.
	maxRows map[bool]int
	// At the time sizesUntil, the client forgets maxRows.
	sizesUntil time.Time
	// Before the time plainUntil, the client sends no optional parameter, because the venue has refused one.
	plainUntil time.Time
	// acceptedUntil contains the values of optional parameters that the venue has accepted together. Before the time in the map, a
	// refused request with these values is not repeated without them, because they cannot be the reason of the refusal.
	acceptedUntil map[string]time.Time
}

func (h *listTraits) omitsOptions(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.plainUntil)
}

func (h *listTraits) recordRefusedOptions(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plainUntil = now.Add(relearnAfter)
}

func (h *listTraits) acceptsOptions(now time.Time, values string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.acceptedUntil[values])
}

// recordAcceptedOptions stores the values, so there must be a bounded number of different ones.
func (h *listTraits) recordAcceptedOptions(now time.Time, values string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acceptedUntil == nil {
		h.acceptedUntil = make(map[string]time.Time)
	}
	h.acceptedUntil[values] = now.Add(relearnAfter)
}

// isWhole reports whether the first page counts as the whole list even if the page's length suggests another page.
func (h *listTraits) isWhole(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.wholeUntil)
}

func (h *listTraits) sendsLimit() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.isPaged && !h.refusesLimit
}

func (h *listTraits) recordRefusedLimit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusesLimit = true
}

// mayBeCut reports whether another page may follow a page of n rows although the response announces none. limited reports whether
// the page was requested with a page size.
func (h *listTraits) mayBeCut(now time.Time, t pageInfo, start pageStart, n int, limited bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case limited && n >= wholeListLimit:
		return true
	case n%roundCount != 0, now.Before(h.wholeUntil), n < h.maxRows[limited] && now.Before(h.sizesUntil):
		return false
	}
	return !t.countsPage || !start.isStart() || !h.countIsTotal
}

// observe records the length n of a page, and calls learnCount. limited reports whether the page was requested with a page size.
func (h *listTraits) observe(now time.Time, t pageInfo, n int, limited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !now.Before(h.sizesUntil) {
		h.maxRows, h.sizesUntil = map[bool]int{}, now.Add(relearnAfter)
	}
	h.maxRows[limited] = max(h.maxRows[limited], n)
	h.learnCount(t)
}

// learnCount learns from a page whether the venue's JSON field "count" contains the number of rows on all pages.
func (h *listTraits) learnCount(t pageInfo) {
	switch {
	case t.countIsTotal:
		h.countIsTotal = true
	case t.countsPage && !t.next.isStart() && !t.guessed:
		h.countIsTotal = false
	}
}

// trustCount calls learnCount. If the venue's JSON field "count" shows that the first page contains all rows, trustCount also
// removes a guessed next page from t.
func (h *listTraits) trustCount(t *pageInfo, start pageStart) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.learnCount(*t); t.guessed && t.countsPage && start.isStart() && h.countIsTotal {
		t.next, t.guessed = pageStart{}, false
	}
}

func (h *listTraits) setPaged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isPaged = true
}

// recordIgnoredOffset records that the venue has refused an offset, or has responded to an offset with rows of an earlier page.
func (h *listTraits) recordIgnoredOffset(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wholeUntil = now.Add(relearnAfter)
}
