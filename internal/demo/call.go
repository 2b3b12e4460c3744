package demo

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/demo/server"
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

	// err is the first error in the request. The methods that read parameters set it, and then return what they return for a
	// parameter that is missing.
	err *apiError
}

func newCall(r *http.Request) *call {
	c := &call{r: r}
	if len(r.URL.RawQuery) > maxQuery {
		c.refuse("the query is too long")
		return c
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		c.refuse("the query is malformed")
		return c
	}
	c.query = query
	return c
}

func (c *call) fail(e *apiError) []byte {
	c.err = cmp.Or(c.err, e)
	return nil
}

func (c *call) refuse(text string) []byte { return c.fail(badRequest(text)) }

func (c *call) get(name string) string { return c.query.Get(name) }

// keyCount returns the length of the request's list of identifiers, or 1 if the request has no list.
func (c *call) keyCount() int {
	for _, name := range []string{"tokenIds", "ids"} {
		if list := c.get(name); list != "" {
			return strings.Count(list, ",") + 1
		}
	}
	return 1
}

// exactlyOne returns the one of the given names that is a parameter of the request. It is an error if none or several are. An empty
// parameter counts as missing.
func (c *call) exactlyOne(names ...string) string {
	found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return c.get(name) == "" })
	if len(found) != 1 {
		c.refuse("exactly one of these parameters is needed: " + strings.Join(names, ", "))
		return ""
	}
	return found[0]
}

// list returns the identifiers of a comma-separated parameter. It refuses more than limit identifiers, and identifiers that are
// empty or too long.
func (c *call) list(name string, limit int) []string {
	ids := strings.Split(c.get(name), ",")
	switch {
	case len(ids) > limit:
		c.refuse(name + " takes at most " + strconv.Itoa(limit) + " identifiers")
	case slices.ContainsFunc(ids, func(id string) bool { return id == "" || len(id) > maxID }):
		c.refuse(name + " holds an identifier that is empty or too long")
	default:
		return ids
	}
	return nil
}

// number returns a parameter that is an integer from low to high. It returns fallback if the parameter is missing or empty.
func (c *call) number(name string, low, high, fallback int) int {
	n, ok := server.Number(c.get(name), low, high, fallback)
	if !ok {
		c.refuse(name + " is a number from " + strconv.Itoa(low) + " to " + strconv.Itoa(high))
	}
	return n
}

// date returns a YYYY-MM-DD parameter as the start of that UTC day. It returns false if the parameter is missing or empty.
func (c *call) date(name string) (millis, bool) {
	return c.time(name, "a date in the form YYYY-MM-DD", time.DateOnly)
}

// instant returns a parameter that is an ISO 8601 date-time or a date. It returns false if the parameter is missing or empty.
func (c *call) instant(name string) (millis, bool) {
	return c.time(name, "an ISO 8601 date-time", time.RFC3339, time.DateOnly)
}

func (c *call) time(name, form string, layouts ...string) (millis, bool) {
	s := c.get(name)
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return millisOf(t), true
		}
	}
	if s != "" {
		c.refuse(name + " is " + form)
	}
	return 0, false
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
