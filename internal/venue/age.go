package venue

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"oddsgraph/internal/market"
)

// longestHidden bounds the age of an answer that has a lifetime but no Age header, however long the lifetime is.
const longestHidden = time.Minute

// ageOf reads from an answer's header how old the answer may be. Caches count ages in whole seconds, so an answer may be a second
// older than its Age header says. An answer with a lifetime and without Age may be as old as its lifetime.
func ageOf(h http.Header) (a market.Age) {
	life, limited := lifetime(h.Values("Cache-Control"))
	seconds, err := strconv.ParseUint(strings.TrimSpace(h.Get("Age")), 10, 31)
	if err != nil {
		if limited {
			life = min(life, longestHidden)
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

// lifetime returns for how long a shared cache may keep an answer; ok is false where Cache-Control does not say.
func lifetime(values []string) (life time.Duration, ok bool) {
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
