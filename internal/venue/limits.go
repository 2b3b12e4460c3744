package venue

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
	"oddsgraph/internal/venue/wire"
)

// rateLimit is what an answer says about the venue's limit.
type rateLimit struct {
	// limit and remaining are -1 where the answer does not say.
	limit, remaining int
	// reset is zero where it does not say.
	reset time.Time
}

const (
	// resetEpochFrom is where a number under X-RateLimit-Reset stops to be seconds from now and is a time, in seconds and
	// then in milliseconds since 1970.
	resetEpochFrom       = 1_000_000_000
	resetMillisecondFrom = 1_000_000_000_000
	// maxCalls is where a number under X-RateLimit-Limit stops to make sense.
	maxCalls = 1_000_000_000
)

// rateLimitOf reads the X-RateLimit headers; what makes no sense is taken as not said.
func rateLimitOf(h http.Header, now time.Time) rateLimit {
	l := rateLimit{limit: calls(h.Get("X-RateLimit-Limit")), remaining: calls(h.Get("X-RateLimit-Remaining"))}
	if l.limit == 0 {
		l.limit = -1 // a venue that lets nothing through does not say so in an answer
	}
	s := strings.TrimSpace(h.Get("X-RateLimit-Reset"))
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		switch {
		case n >= resetMillisecondFrom:
			l.reset = time.UnixMilli(int64(n))
		case n >= resetEpochFrom:
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

// calls reads a number of calls, of which the first counts where a header has several; -1 is none.
func calls(s string) int {
	if i := strings.IndexAny(s, ",;"); i >= 0 {
		s = s[:i]
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > maxCalls {
		return -1
	}
	return n
}

// reportLimits hands on what an answer says about the venue's limit, and gives the error of a refused call its wait: the
// venue's word, else the end of the window where it names it.
func (c *Client) reportLimits(ctx context.Context, h http.Header, err error) {
	now := c.clock.Now()
	l := rateLimitOf(h, now)
	if l.limit >= 0 || l.remaining >= 0 || !l.reset.IsZero() {
		market.ObserveLimit(ctx, l.limit, l.remaining, l.reset)
	}
	var limited *market.Error
	if !errors.As(err, &limited) || limited.Code != market.CodeRateLimited {
		return
	}
	if limited.RetryAfter == 0 && l.remaining == 0 && l.reset.After(now) {
		limited.RetryAfter = l.reset.Sub(now)
	}
	market.ReportThrottled(ctx, now.Add(max(limited.RetryAfter, leastBackoff)))
}
