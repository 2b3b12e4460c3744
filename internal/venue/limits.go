package venue

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/internal/venue/wire"
)

// rateLimits is what a response says about the venue's rate limit.
type rateLimits struct {
	// limit and remaining are -1 if the response does not have them.
	limit, remaining int
	// reset is zero if the response does not have it.
	reset time.Time
}

const (
	// A number in X-RateLimit-Reset is seconds from now below minResetTime, seconds since 1970 below minResetMillis, and
	// milliseconds since 1970 otherwise.
	minResetTime   = 1_000_000_000
	minResetMillis = 1_000_000_000_000
	// maxLimitValue is the greatest number that is accepted in X-RateLimit-Limit.
	maxLimitValue = 1_000_000_000
)

// rateLimitOf reads the X-RateLimit headers. Invalid values are ignored.
func rateLimitOf(h http.Header, now time.Time) rateLimits {
	l := rateLimits{limit: parseCalls(h.Get("X-RateLimit-Limit")), remaining: parseCalls(h.Get("X-RateLimit-Remaining"))}
	if l.limit == 0 {
		l.limit = -1 // a limit of 0 would have allowed no response
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

// parseCalls reads a number of calls, the first of several. It returns -1 if there is none.
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

// reportLimits passes the rate limit of a response to the context's permit. An error RATE_LIMITED without a wait gets the
// time until the window ends, if the response says when.
func (c *Client) reportLimits(ctx context.Context, h http.Header, err error) {
	now := c.cfg.Clock.Now()
	l := rateLimitOf(h, now)
	if l.limit >= 0 || l.remaining >= 0 || !l.reset.IsZero() {
		reqctx.ObserveLimit(ctx, l.limit, l.remaining, l.reset)
	}
	limited, ok := errors.AsType[*market.Error](err)
	if !ok || limited.Code != market.CodeRateLimited {
		return
	}
	if limited.RetryAfter == 0 && l.remaining == 0 && l.reset.After(now) {
		limited.RetryAfter = l.reset.Sub(now)
	}
	reqctx.ReportThrottled(ctx, now.Add(max(limited.RetryAfter, minBackoff)))
}
