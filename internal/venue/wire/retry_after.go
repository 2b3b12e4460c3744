package wire

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxWait bounds how long a venue can make us wait.
const MaxWait = 5 * time.Minute

// RetryAfter returns how long the header Retry-After says to wait, in seconds or as an HTTP date (RFC 9110, 10.2.3); at most
// MaxWait, and 0 where it says nothing that makes sense, or a time of the past.
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
