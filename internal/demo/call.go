package demo

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of a request.
const (
	maxQuery = 32 << 10 // bytes
	maxID    = 256      // bytes
	maxText  = 200      // bytes of a search text
)

type call struct {
	r       *http.Request
	query   url.Values
	account *account // nil if the endpoint needs no credentials or the credentials are not valid
}

// newCall parses the query of a request. The call is never nil: after an error, call.keyCount and Venue.limit can still use the
// call.
func newCall(r *http.Request) (*call, *apiError) {
	c := &call{r: r}
	if len(r.URL.RawQuery) > maxQuery {
		return c, badRequest("the query is too long")
	}
	var err error
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		c.query = nil
		return c, badRequest("the query is malformed")
	}
	return c, nil
}

func (c *call) get(name string) string { return c.query.Get(name) }

// has reports whether the request has the parameter, even if it is empty.
func (c *call) has(name string) bool { return c.query.Has(name) }

// keyCount returns the length of the request's list of identifiers, or 1 if the request has no list.
func (c *call) keyCount() int {
	for _, name := range []string{"tokenIds", "ids"} {
		if list := c.get(name); list != "" {
			return strings.Count(list, ",") + 1
		}
	}
	return 1
}

// exactlyOne returns the one of the given names that is a parameter of the request. It returns an error if none or several of the
// names are parameters of the request. An empty parameter counts as missing.
func (c *call) exactlyOne(names ...string) (string, *apiError) {
	found := ""
	for _, name := range names {
		if c.get(name) == "" {
			continue
		}
		if found != "" {
			found = ""
			break
		}
		found = name
	}
	if found == "" {
		return "", badRequest("exactly one of these parameters is needed: " + strings.Join(names, ", "))
	}
	return found, nil
}

// list returns the identifiers of a comma-separated parameter. It refuses more than limit identifiers, and identifiers that are
// empty or too long.
func (c *call) list(name string, limit int) ([]string, *apiError) {
	ids := strings.Split(c.get(name), ",")
	if len(ids) > limit {
		return nil, badRequest(name + " takes at most " + strconv.Itoa(limit) + " identifiers")
	}
	for _, id := range ids {
		if id == "" || len(id) > maxID {
			return nil, badRequest(name + " holds an identifier that is empty or too long")
		}
	}
	return ids, nil
}

// number returns a parameter that is an integer from low to high. It returns fallback if the parameter is missing or empty.
func (c *call) number(name string, low, high, fallback int) (int, *apiError) {
	s := c.get(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, badRequest(name + " is a number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high))
	}
	return n, nil
}

// date returns a YYYY-MM-DD parameter as the start of that UTC day. It returns false if the parameter is missing or empty.
func (c *call) date(name string) (millis, bool, *apiError) {
	s := c.get(name)
	if s == "" {
		return 0, false, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return 0, false, badRequest(name + " is a date in the form YYYY-MM-DD")
	}
	return millisOf(t), true, nil
}

// instant returns a parameter that is an ISO 8601 date-time or a date. It returns false if the parameter is missing or empty.
func (c *call) instant(name string) (millis, bool, *apiError) {
	s := c.get(name)
	if s == "" {
		return 0, false, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return millisOf(t), true, nil
		}
	}
	return 0, false, badRequest(name + " is an ISO 8601 date-time")
}

// limit counts a request for its client. At a user endpoint, the client is the API key if the credentials are valid. Otherwise it
// is the IP address. limit reports whether the client may send the request. If the client may not send it, limit turns the answer
// into an error. If there is a limit, limit adds rate-limit headers to the answer. X-RateLimit-Reset is the Unix time in seconds
// when the oldest request leaves the window.
func (v *Venue) limit(c *call, a *answer) bool {
	l, perMinute, client := &v.limits.public, v.config.PublicPerMinute, ""
	if c.account != nil {
		l, perMinute, client = &v.limits.key, v.config.KeyPerMinute, c.account.key
	} else if client, _, _ = net.SplitHostPort(c.r.RemoteAddr); client == "" {
		client = c.r.RemoteAddr
	}
	if perMinute <= 0 {
		return true
	}
	now := v.now()
	wait, left, reset := l.Take(client, perMinute, now.Time(), false)
	a.header.Set("X-RateLimit-Limit", strconv.Itoa(perMinute))
	a.header.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	a.header.Set("X-RateLimit-Reset", ceilSeconds(now+millis(reset/time.Millisecond)))
	if wait > 0 {
		a.header.Set("Retry-After", ceilSeconds(millis(wait/time.Millisecond)))
		a.fail(errLimited)
	}
	return wait == 0
}

func ceilSeconds(t millis) string { return strconv.FormatInt(int64((t+second-1)/second), 10) }
