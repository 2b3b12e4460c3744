package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

var venueName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// addVenues sets c.Demo.Driver, and fills c.More from --demo-driver and --more-venues. It adds its errors to p.problems.
func (p *parser) addVenues(k *kong.Kong, c *Config) {
	c.Demo.Driver = "generic"
	if len(c.Demo.Drivers) > 0 {
		c.Demo.Driver = c.Demo.Drivers[0]
	}
	if len(c.Demo.Drivers) > 1 {
		if c.Venue.URL != "" || c.Command == CommandVenue {
			p.report(flagOf(k, "demo-driver").Value, c.Demo.Drivers.String(), errors.New("names several venues"), "one with --venue-url, and in the command venue")
		}
		if p.origins["venue-driver"] == "" {
			c.Venue.Driver = c.Demo.Driver
		}
		for i, driver := range c.Demo.Drivers[1:] {
			further := p.venueFrom(k, c, given{driver, p.origins["demo-driver"]})
			further.Demo.Driver, further.Demo.Other, further.Demo.Listen = driver, uint64(i+1), "127.0.0.1:0"
			c.More = append(c.More, further)
		}
	}
	for _, element := range c.MoreVenues {
		c.More = append(c.More, p.venueFrom(k, c, given{element, p.origins["more-venues"]}))
	}
}

// venueFrom returns a copy of c for a further venue: the name of a driver, or a file that is named after the venue. What belongs to the
// venue has its default, unless the file sets it.
func (p *parser) venueFrom(k *kong.Kong, c *Config, element given) *Config {
	own := newParser(nil, io.Discard)
	own.loaded = true // there is no other file
	name := element.value
	if strings.ContainsAny(element.value, "/.") {
		text, err := readFile(element.value)
		name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
		if err == nil && !venueName.MatchString(name) {
			err = errors.New("is named after no venue")
		}
		if err != nil {
			p.report(flagOf(k, "more-venues").Value, element.value, err, "drivers, and paths of files that can be read and have the names of venues, such as other.env: at most 32 lower-case letters, digits and hyphens, a letter first")
		}
		own.addLines(element.value, text, keys(k))
		for _, name := range slices.Sorted(maps.Keys(own.values)) {
			if !ofVenue(name) || name == variable("venue-credentials") {
				own.problems = append(own.problems, fmt.Errorf("%s: %s is no variable of a further venue; want ODDSGRAPH_VENUE_* and ODDSGRAPH_STREAM_*, without credentials", own.values[name].origin, name))
				delete(own.values, name) // a file that names itself would never end
			}
		}
	} else {
		own.values[variable("venue-driver")] = element
	}
	venue, _ := own.parse(nil)
	p.problems = append(p.problems, own.problems...)
	further := *c
	further.More, further.Demo.Driver = nil, ""
	further.Venue, further.StreamURL, further.StreamTopics, further.origins = venue.Venue, venue.StreamURL, venue.StreamTopics, venue.origins
	further.Venue.Credentials, further.Venue.Name = CredentialsPublic, name
	return &further
}

// ofVenue reports whether a file of a further venue may set a variable; see also venueFrom.
func ofVenue(name string) bool {
	return strings.HasPrefix(name, variable("venue-")) || strings.HasPrefix(name, variable("stream-"))
}
