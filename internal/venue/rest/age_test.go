package rest

import (
	"net/http"
	"testing"
	"time"

	"oddsgraph/internal/market"
)

func TestAgeOfResponse(t *testing.T) {
	const s = time.Second
	for _, test := range []struct {
		age, cacheControl string
		want              market.Age
	}{
		{"", "", market.Age{}},
		{"", "public", market.Age{}},
		{"", "max-age=tomorrow", market.Age{}},
		{"soon", "", market.Age{}},
		{"-3", "", market.Age{}},
		{"", "no-store", market.Age{Known: true}},
		{"", "max-age=10, no-cache", market.Age{Known: true}},
		{"", "max-age=0", market.Age{Known: true}},
		{"", "public, max-age=10", market.Age{Known: true, Most: 10 * s, Renewed: 10 * s}},
		{"", "max-age=86400", market.Age{Known: true, Most: time.Minute, Renewed: time.Minute}},
		{"", "max-age=10, s-maxage=3", market.Age{Known: true, Most: 3 * s, Renewed: 3 * s}},
		{"", `S-MaxAge="3", max-age=10`, market.Age{Known: true, Most: 3 * s, Renewed: 3 * s}},
		{"0", "max-age=10", market.Age{Known: true, Most: s, Renewed: 10 * s}},
		{"4", "max-age=10", market.Age{Known: true, Least: 4 * s, Most: 5 * s, Renewed: 6 * s}},
		{"10", "max-age=10", market.Age{Known: true, Least: 10 * s, Most: 10 * s}},
		{"90", "max-age=10", market.Age{Known: true, Least: 90 * s, Most: 91 * s}},
		{" 90 ", "", market.Age{Known: true, Least: 90 * s, Most: 91 * s}},
		{"0", "no-cache", market.Age{Known: true}},
	} {
		h := http.Header{}
		if test.age != "" {
			h.Set("Age", test.age)
		}
		if test.cacheControl != "" {
			h.Set("Cache-Control", test.cacheControl)
		}
		if got := ageOf(h); got != test.want {
			t.Errorf("with Age %q and Cache-Control %q, ageOf returned %+v, want %+v", test.age, test.cacheControl, got, test.want)
		}
	}
}
