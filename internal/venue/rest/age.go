package rest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// maxHiddenAge bounds the age that ageOf assumes for a response that has a lifetime but no Age header.
const maxHiddenAge = time.Minute

// ageOf returns the least and the greatest age that a response can have according to its header. Caches count ages in whole
// seconds, so a response may be a second older than its Age header says. But if the Age header is at most the lifetime, the
// greatest age is at most the lifetime, too. A response with a lifetime but without an Age header may be as old as its lifetime,
// but ageOf assumes at most maxHiddenAge. If a response has neither a lifetime nor an Age header, its age is unknown.
func ageOf(h http.Header) (a market.Age) {
	life, limited := maxAge(h.Values("Cache-Control"))
	seconds, err := strconv.ParseUint(strings.TrimSpace(h.Get("Age")), 10, 31)
	if err != nil {
		if limited {
			life = min(life, maxHiddenAge)
			a = market.Age{Known: true, Most: life, Renewed: life}
		}
		return a
	}
	a = market.Age{Known: true, Least: time.Duration(seconds) * time.Second}
	a.Most = a.Least + time.Second
	if limited && a.Least <= life {
		a.Most, a.Renewed = min(a.Most, life), life-a.Least
	}
	return a
}

// maxAge returns the time for which a shared cache may serve a response. If Cache-Control does not limit this time, ok is false.
func maxAge(values []string) (life time.Duration, ok bool) {
	shared := false
	for directive := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return 0, true
		case "max-age", "s-maxage":
			seconds, err := strconv.ParseUint(strings.Trim(value, `" `), 10, 31)
			if err == nil && (name == "s-maxage" || !shared) {
				life, ok, shared = time.Duration(seconds)*time.Second, true, name == "s-maxage"
			}
		}
	}
	return life, ok
}
