package wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait is the longest wait that the client accepts from a venue.
const MaxWait = 5 * time.Minute

// RetryAfter returns the wait in the header Retry-After, which contains a number of seconds or an HTTP date (RFC 9110, 10.2.3). A
// longer wait than MaxWait is shortened to MaxWait. If the header is missing or invalid, or if its date has passed, the wait is 0.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	s := strings.TrimSpace(h.Get("Retry-After"))
	if t, err := http.ParseTime(s); err == nil {
		return min(max(t.Sub(now), 0), MaxWait)
	}
	seconds, err := strconv.ParseUint(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return MaxWait
	case err != nil:
		return 0
	}
	return time.Duration(min(seconds, uint64(MaxWait/time.Second))) * time.Second
}
