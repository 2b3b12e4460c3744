package rest

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/wire"
)

type rateLimits struct {
	// limit and remaining are -1 if the header is missing or invalid.
	limit, remaining int
	// reset is zero if the header is missing or invalid.
	reset time.Time
}

const (
	// Venues write a date or one of three kinds of numbers in X-RateLimit-Reset. A number below minResetTime is in seconds from
	// now. Any other number below minResetMillis is in seconds since 1970. Numbers from minResetMillis are in milliseconds since
	// 1970.
	minResetTime   = 1_000_000_000
	minResetMillis = 1_000_000_000_000
	// maxLimitValue is the greatest number that is accepted in X-RateLimit-Limit and X-RateLimit-Remaining.
	maxLimitValue = 1_000_000_000
)

// rateLimitOf reads the X-RateLimit headers and ignores invalid values. The reset is at most wire.MaxWait away.
func rateLimitOf(h http.Header, now time.Time) rateLimits {
	l := rateLimits{limit: parseCalls(h.Get("X-RateLimit-Limit")), remaining: parseCalls(h.Get("X-RateLimit-Remaining"))}
	if l.limit == 0 {
		l.limit = -1 // a limit of 0 cannot be true, because the venue has responded
	}
	s := strings.TrimSpace(h.Get("X-RateLimit-Reset"))
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		switch {
		case n >= minResetMillis:
			l.reset = time.UnixMilli(int64(n))
		case n >= minResetTime:
			l.reset = time.Unix(int64(n), 0)
		default:
			l.reset = now.Add(time.Duration(min(n, uint64(wire.MaxWait/time.Second))) * time.Second)
		}
	} else if t, err := http.ParseTime(s); err == nil {
		l.reset = t
	}
	if l.reset.After(now.Add(wire.MaxWait)) {
		l.reset = now.Add(wire.MaxWait)
	}
	return l
}

// parseCalls reads the first number of a header. If it is invalid, parseCalls returns -1.
func parseCalls(s string) int {
	if i := strings.IndexAny(s, ",;"); i >= 0 {
		s = s[:i]
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > maxLimitValue {
		return -1
	}
	return n
}

// reportLimits passes what a response says about the rate limit to the permit of call. If err is RATE_LIMITED without RetryAfter, and
// the headers say that no calls remain, reportLimits first sets RetryAfter to the time until the reset.
func (c *Client) reportLimits(call upstream.Call, e upstream.Endpoint, resp *http.Response, err error) {
	now := c.cfg.Clock.Now()
	l := rateLimitOf(resp.Header, now)
	a := upstream.Answer{Endpoint: e, Limit: l.limit, Remaining: l.remaining, Reset: l.reset}
	if limited, ok := errors.AsType[*market.Error](err); ok && limited.Code == market.CodeRateLimited {
		if limited.RetryAfter == 0 && l.remaining == 0 && l.reset.After(now) {
			limited.RetryAfter = l.reset.Sub(now)
		}
		a.Refused, a.RetryAfter = true, limited.RetryAfter
	}
	a.Served = !a.Refused && resp.StatusCode < 500
	call.Answered(a)
}

// PublishedLimit is a limit that a venue documents for some endpoints. If Refill is 0, Calls is the greatest number of calls in any
// period of the length Span. If Refill is not 0, the limit is a bucket of tokens.
type PublishedLimit struct {
	Endpoints []upstream.Endpoint
	Calls     int
	Span      time.Duration
	// Refill is the number of tokens that the venue adds each second, up to Burst. A call costs Cost tokens.
	Refill, Burst, Cost float64
}
