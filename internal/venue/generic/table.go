package generic

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"oddsgraph/internal/market"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
)

// A setting is a part of the way in which a venue is asked.
type setting uint8

const (
	settingMarketID setting = iota
	settingMarketIDs
	settingMarketSlug
	settingMarketToken
	settingMarketTokens
	settingSpreads
	settingSearchOptions
	settingSearchPaging
	settingAccountOptions
	settingAccountPaging
	settingMaxURL
	settings = iota
)

// The values of settings. none in place of the name of a list parameter means that ids are requested one by one.
const (
	none, yes, no               = "none", "yes", "no"
	byTokenIDs, byToken, byBook = "tokenIds", "tokenId", "books"
	byCursor, byOffset          = "cursor", "offset"
)

type definition struct {
	name, undecided string
	values          []string
}

// definitions has the name of each setting, and what the venue's description shows, which counts until the setting is decided. If it is
// empty, the driver follows what each answer says about further pages. values is nil if the value is the name of a parameter.
var definitions = [settings]definition{
	settingMarketID:       {name: "market-id", undecided: "marketId"},
	settingMarketIDs:      {name: "market-ids", undecided: none},
	settingMarketSlug:     {name: "market-slug", undecided: "slug"},
	settingMarketToken:    {name: "market-token", undecided: "tokenId"},
	settingMarketTokens:   {name: "market-tokens", undecided: none},
	settingSpreads:        {name: "spreads", undecided: byTokenIDs, values: []string{byTokenIDs, byToken, byBook}},
	settingSearchOptions:  {name: "search-options", undecided: yes, values: []string{yes, no}},
	settingSearchPaging:   {name: "search-paging", values: []string{byCursor, byOffset, none}},
	settingAccountOptions: {name: "account-options", undecided: no, values: []string{yes, no}},
	settingAccountPaging:  {name: "account-paging", values: []string{byCursor, byOffset, none}},
	settingMaxURL:         {name: "max-url", undecided: strconv.Itoa(DefaultMaxURL)},
}

func (s setting) String() string { return definitions[s].name }

// Table says how a venue is asked. A setting without a value is undecided. docs/venues/generic.md lists the settings.
type Table [settings]string

var parameterName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,31}$`)

// ParseTable reads a table. Each element is the name of a setting, a colon and a value.
func ParseTable(elements []string) (t Table, err error) {
	for _, element := range elements {
		name, value, _ := strings.Cut(element, ":")
		i := slices.IndexFunc(definitions[:], func(d definition) bool { return d.name == name })
		if i < 0 {
			return Table{}, fmt.Errorf("%q is no setting of a venue; the settings are %s", name, settingNames())
		}
		if err := setting(i).check(value); err != nil {
			return Table{}, err
		}
		t[i] = value
	}
	return t, nil
}

func settingNames() string {
	names := make([]string, settings)
	for s := range definitions {
		names[s] = definitions[s].name
	}
	return strings.Join(names, ", ")
}

func (s setting) check(value string) error {
	d := definitions[s]
	switch {
	case s == settingMaxURL:
		if n, err := strconv.Atoi(value); err != nil || n < minURL || n > maxMaxURL {
			return fmt.Errorf("%s is a number of bytes from %d to %d", d.name, minURL, maxMaxURL)
		}
	case d.values == nil && !parameterName.MatchString(value):
		return fmt.Errorf("%s has no name of a parameter", d.name)
	case d.values != nil && !slices.Contains(d.values, value):
		return fmt.Errorf("%s is one of %s", d.name, strings.Join(d.values, ", "))
	}
	return nil
}

// String returns the decided settings in the form that ParseTable reads, separated by commas.
func (t Table) String() string {
	var decided []string
	for s, value := range t {
		if value != "" {
			decided = append(decided, definitions[s].name+":"+value)
		}
	}
	return strings.Join(decided, ",")
}

func (t *Table) lacks(list ...setting) bool {
	return slices.ContainsFunc(list, func(s setting) bool { return t[s] == "" })
}

// reading is one read of the venue. A probe that ends meanwhile does not change the table of the read.
type reading struct {
	*Client
	call upstream.Call
	told *Table
}

func (c *Client) reading(call upstream.Call) reading { return reading{c, call, c.table.Load()} }

// value returns the value of a setting. It is empty only for the paging of a list that is undecided.
func (c reading) value(s setting) string { return cmp.Or(c.told[s], definitions[s].undecided) }

func (c reading) decided(s setting) bool { return c.told[s] != "" }

func (c reading) listParameter(s setting) string {
	if name := c.value(s); name != none {
		return name
	}
	return ""
}

// contradiction counts an answer that contradicts a setting, and returns its error, which names the setting.
func (c reading) contradiction(e upstream.Endpoint, s setting, why string) error {
	c.Report(e, rest.Drift{"contradicts " + s.String()})
	return market.Errorf(market.CodeUpstreamBadResponse, "the venue's answer contradicts the setting %s:%s (%s)", s, cmp.Or(c.value(s), "undecided"), e).
		Because(&rest.CallFailure{Kind: rest.KindShape, Text: why})
}
