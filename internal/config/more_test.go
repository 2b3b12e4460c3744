package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/config"
)

// venueFile writes a file with a name.
func venueFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFurtherVenues checks which venues a configuration names, and what they take over from the first one.
func TestFurtherVenues(t *testing.T) {
	file := venueFile(t, "manifold.env", "ODDSGRAPH_VENUE_URL=https://m.example/v0\nODDSGRAPH_VENUE_BATCH=7\nODDSGRAPH_STREAM_TOPICS=50")
	for args, want := range map[string]string{
		"":                         "[]",
		"--demo-driver=polymarket": "[]",
		"--more-venues=kalshi":     "[kalshi kalshi  demo: 0 batch 100 topics 2000]",
		"--more-venues=kalshi," + file + " --venue-batch=9 --stream-topics=77 --stream-url=ws://a/": "[kalshi kalshi  demo: 0 batch 100 topics 2000 manifold generic https://m.example/v0 demo: 0 batch 7 topics 50]",
		"--demo-driver=polymarket,kalshi,generic --demo-listen=127.0.0.1:70":                        "[kalshi kalshi  demo:kalshi 1 batch 100 topics 2000 generic generic  demo:generic 2 batch 100 topics 2000]",
		"--demo-driver=generic,kalshi --more-venues=polymarket":                                     "[kalshi kalshi  demo:kalshi 1 batch 100 topics 2000 polymarket polymarket  demo: 0 batch 100 topics 2000]",
	} {
		first := parse(t, args+" --request-timeout=3s --venue-credentials=none")
		got := []string{}
		for _, c := range first.More {
			v := c.Venue
			got = append(got, fmt.Sprintf("%s %s %s demo:%s %d batch %d topics %d", v.Name, v.Driver, v.URL, c.Demo.Driver, c.Demo.Other, v.Batch, c.StreamTopics))
			if v.Credentials != "public" || c.StreamURL != "" || c.More != nil || c.RequestTimeout != first.RequestTimeout {
				t.Errorf("%s: the further venue %s has credentials %q, stream %q and timeout %v, want public, none and that of the first", args, v.Name, v.Credentials, c.StreamURL, c.RequestTimeout)
			}
			if c.Demo.Driver != "" && c.Demo.Listen != "127.0.0.1:0" {
				t.Errorf("%s: the demo venue %s listens on %s, want a free port", args, v.Name, c.Demo.Listen)
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: the further venues are\n%v\nwant\n%s", args, got, want)
		}
		if driver, want := first.Demo.Driver, first.Demo.Drivers[0]; driver != want || len(first.Demo.Drivers) > 1 && first.Venue.Driver != want {
			t.Errorf("%s: the first venue is %s with the demo venue %s, want %s", args, first.Venue.Driver, driver, want)
		}
	}
	if got := parse(t, "--demo-driver=polymarket,kalshi --venue-driver=kalshi").Venue.Driver; got != "kalshi" {
		t.Errorf("--venue-driver gives %s, want what was set", got)
	}
}

// TestShowFurtherVenues checks that the settings of further venues are printed with their sources and without secrets.
func TestShowFurtherVenues(t *testing.T) {
	file := venueFile(t, "manifold.env", "ODDSGRAPH_STREAM_URL=wss://hunter2@m.example/ws?key=hunter2")
	var out strings.Builder
	if err := parse(t, "--venue-batch=7 --more-venues=kalshi,"+file).Show(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.Join(strings.FieldsFunc(out.String(), func(r rune) bool { return r == ' ' }), " "), "\n")
	for _, want := range []string{
		"--venue-batch 7 --venue-batch", "kalshi ODDSGRAPH_VENUE_DRIVER kalshi --more-venues", "kalshi ODDSGRAPH_VENUE_BATCH 100 default",
		"manifold ODDSGRAPH_STREAM_URL wss://m.example/ws " + file + ":1",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
	if s := out.String(); strings.Contains(s, "hunter2") || strings.Contains(s, "manifold ODDSGRAPH_LISTEN") {
		t.Errorf("the table has a secret, or a setting of the process twice:\n%s", s)
	}
}

func TestBadFurtherVenues(t *testing.T) {
	file := venueFile(t, "own.env", "ODDSGRAPH_LISTEN=:80\nODDSGRAPH_VENUE_CREDENTIALS=query\nODDSGRAPH_VENUE_BATCH=0\nODDSGRAPH_MORE_VENUES=kalshi\nODDSGRAPH_VENUE_URLL=a")
	want := []string{
		file + ":5: ODDSGRAPH_VENUE_URLL is no variable of oddsgraph; did you mean ODDSGRAPH_VENUE_URL?",
		file + ":1: ODDSGRAPH_LISTEN is no variable of a further venue; want ODDSGRAPH_VENUE_* and ODDSGRAPH_STREAM_*, without credentials",
		file + ":4: ODDSGRAPH_MORE_VENUES is no variable of a further venue; want ODDSGRAPH_VENUE_* and ODDSGRAPH_STREAM_*, without credentials",
		file + ":2: ODDSGRAPH_VENUE_CREDENTIALS is no variable of a further venue; want ODDSGRAPH_VENUE_* and ODDSGRAPH_STREAM_*, without credentials",
		file + `:3: ODDSGRAPH_VENUE_BATCH (--venue-batch): "0" is too small; want a number from 1 to 1000`,
	}
	if got := problems(t, "--more-venues="+file); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	itself := venueFile(t, "itself.env", "")
	if err := os.WriteFile(itself, []byte("ODDSGRAPH_MORE_VENUES="+itself), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"--more-venues=./none":    "cannot be read",
		"--more-venues=" + itself: "is no variable of a further venue",
		"--demo-driver=polymarket,kalshi --venue-url=https://v.example": "names several venues",
		"venue --demo-driver=polymarket,kalshi":                         "names several venues",
		"--demo-driver=polymarket,nobody":                               "some of generic, polymarket, kalshi",
		"--more-venues=" + venueFile(t, "Big.env", ""):                  "is named after no venue",
		"--more-venues=" + venueFile(t, strings.Repeat("a", 33), ""):    "is named after no venue",
	} {
		if got := problems(t, args); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: got the problems %q, want one with %q", args, got, want)
		}
	}
	a, b := parse(t, "--more-venues=kalshi"), config.Default()
	if got := a.Differences(b); len(got) != 1 || got[0] != "more-venues" {
		t.Errorf("a further venue changes the settings %v, want more-venues", got)
	}
}
