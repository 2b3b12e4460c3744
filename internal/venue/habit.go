package venue

import (
	"sync"
	"time"
)

// habit is what the venue turned out to do with one of its lists. The zero value knows nothing. It is safe for
// concurrent use.
type habit struct {
	mu sync.Mutex
	// pages says that the list came in pages, noLimit that a page size is refused.
	pages, noLimit bool
	// countsAll says that count was once greater than a page, so it is the number of all rows. With other venues it is that of
	// the page's rows.
	countsAll bool
	// wholeUntil ends the time for which lists count as whole because the venue refused or ignored an offset.
	wholeUntil time.Time
	// most is the greatest number of rows that a page had, of those asked for without a page size and of those with one. A
	// shorter page was not cut. sizesUntil ends the time for which that counts.
	most       [2]int
	sizesUntil time.Time
	// plainUntil ends the time for which no parameter is sent that the venue need not know, because it refused one.
	plainUntil time.Time
}

// plain reports whether only the parameters are sent that a list cannot be asked for without.
func (h *habit) plain(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.plainUntil)
}

func (h *habit) refuseOptions(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.plainUntil = now.Add(relearn)
}

// whole reports whether lists count as whole where nothing but their length suggests another page.
func (h *habit) whole(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.wholeUntil)
}

// limits reports whether a list is asked for with a page size.
func (h *habit) limits() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pages && !h.noLimit
}

func (h *habit) refuseLimit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noLimit = true
}

// doubts reports whether a page of n rows, without a word on the next one, may have been cut by the venue.
func (h *habit) doubts(now time.Time, t turn, at place, n int, limited bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case limited && n >= wholePage:
		return true
	case n%roundPage != 0, now.Before(h.wholeUntil), n < h.most[sized(limited)] && now.Before(h.sizesUntil):
		return false
	}
	return !t.counted || !at.isStart() || !h.countsAll
}

// note takes in a page of n rows.
func (h *habit) note(now time.Time, t turn, n int, limited bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !now.Before(h.sizesUntil) {
		h.most, h.sizesUntil = [2]int{}, now.Add(relearn)
	}
	size := &h.most[sized(limited)]
	*size = max(*size, n)
	h.learnCount(t)
}

// learnCount notes what the venue counts. The lock is held.
func (h *habit) learnCount(t turn) {
	switch {
	case t.countsAll:
		h.countsAll = true
	case t.counted && !t.next.isStart() && !t.guessed:
		h.countsAll = false
	}
}

// trustCount ends a list at a first page that has as many rows as the venue counts, where the venue is known to count all rows.
func (h *habit) trustCount(t *turn, at place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.learnCount(*t); t.guessed && t.counted && at.isStart() && h.countsAll {
		t.next, t.guessed = place{}, false
	}
}

// paged notes that the list came in pages.
func (h *habit) paged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pages = true
}

// ignoresOffset notes that the venue refused an offset or answered with the same rows: its lists are whole.
func (h *habit) ignoresOffset(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wholeUntil = now.Add(relearn)
}

func sized(limited bool) int {
	if limited {
		return 1
	}
	return 0
}
