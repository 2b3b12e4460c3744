package generic

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

// maxProbeCalls bounds the HTTP calls of one Probe.
const maxProbeCalls = 10

// Settings returns the decided settings in the form that ParseTable reads.
func (c *Client) Settings() string { return c.table.Load().String() }

// probed are the settings that Probe decides. Settings about accounts stay undecided, because their reads need a caller's credentials.
var probed = []setting{
	settingMarketIDs, settingMarketTokens, settingSpreads, settingSearchOptions, settingSearchPaging, settingMaxURL,
}

// Undecided reports whether Probe would ask the venue.
func (c *Client) Undecided() bool { return c.table.Load().lacks(probed...) }

// Probe asks the venue how it is asked, as far as the table leaves it undecided, with at most ten calls. It decides a setting only if
// an answer shows the value. A response with status 429 or 5xx shows nothing. Probe returns an error if another Probe may decide more.
// It must not be called concurrently.
func (c *Client) Probe(ctx context.Context, call upstream.Call) error {
	before := *c.table.Load()
	p := &probe{Client: c, table: before}
	call = upstream.Call{Permit: &probePermit{outer: call}}
	if c.Undecided() {
		p.search(ctx, call)
	}
	if len(p.ids) > 0 {
		p.markets(ctx, call)
		p.tokenMarkets(ctx, call)
		p.spreads(ctx, call)
		p.urls(ctx, call)
	}
	if p.table != before {
		c.table.Store(&p.table)
		c.Log().Info("the venue has been probed, and is asked in this way until the program stops", "venue_table", p.table.String())
	}
	return p.err
}

// probe is one run of Probe.
type probe struct {
	*Client
	// table has what has been decided so far. err is the first error that may not come again.
	table Table
	err   error
	// ids are two markets, and tokens are the tokens of all markets that the search has found, those of open markets first. hasOpen
	// reports whether one of the markets is open.
	ids, tokens []string
	hasOpen     bool
}

// probePermit is the permit of the calls of one Probe. It also asks the permit of outer.
type probePermit struct {
	outer upstream.Call
	calls atomic.Int32
}

func (p *probePermit) AdmitCall(ctx context.Context) error {
	if p.calls.Add(1) > maxProbeCalls {
		return market.Errorf(market.CodeRateLimited, "a probe makes at most %d calls", maxProbeCalls)
	}
	return p.outer.Admit(ctx)
}

func (p *probePermit) Answered(a upstream.Answer) { p.outer.Answered(a) }

func (p *probe) undecided(s setting) bool { return p.table.lacks(s) }

// verdict is what a call shows about the form of its request.
type verdict uint8

const (
	unknown  verdict = iota // nothing: the venue is limited, fails, or does not respond
	unclear                 // the venue reports an error of unknown meaning, or its answer lacks something that was requested
	refused                 // the venue refuses the form, or its answer is about something else
	answered                // the answer has everything that was requested
)

// judge returns the verdict on a call. all reports that the answer has everything that was requested.
func (p *probe) judge(err error, all bool) verdict {
	why, _ := errors.AsType[*rest.CallFailure](err)
	switch {
	case err == nil && all:
		return answered
	case mayBeMissing(err), why != nil && why.Kind == rest.KindShape:
		return refused
	case err == nil, why != nil && why.Kind == rest.KindUnclear:
		return unclear
	}
	if p.err == nil {
		p.err = err
	}
	return unknown
}

// try makes one call for ids, which the venue has, with a parameter.
func try[T any](ctx context.Context, call upstream.Call, p *probe, l *lookup[T], parameter string, ids []string) verdict {
	values, err := l.call(ctx, call, p.Client, parameter, ids, func(string) {})
	return p.judge(err, len(values) == len(ids))
}

// search decides how the search is asked, and collects ids for the other calls.
func (p *probe) search(ctx context.Context, call upstream.Call) {
	q := queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: maxPageSize}
	page := func(start pageStart) (rest.RowList, verdict) {
		payload, err := p.Get(ctx, call, searchRequest(q, start, p.table[settingSearchOptions] == no))
		rows, ok := searchRows(payload)
		return rows, p.judge(err, ok)
	}
	rows, got := page(pageStart{})
	if got == refused && p.undecided(settingSearchOptions) {
		p.table[settingSearchOptions] = no
		if rows, got = page(pageStart{}); got != answered {
			p.table[settingSearchOptions] = ""
		}
	}
	if got != answered || len(rows.Rows) == 0 {
		if p.err == nil {
			p.err = rest.UnknownForm(upstream.EndpointSearch, "a search without a text finds no markets, so the venue cannot be probed")
		}
		return
	}
	if p.undecided(settingSearchOptions) {
		p.table[settingSearchOptions] = yes
	}
	p.collect(rows.Rows)
	if p.undecided(settingSearchPaging) {
		p.paging(rows, q.Limit, page)
	}
}

// collect takes ids from the rows of a search, those of open markets first.
func (p *probe) collect(rows []wire.Value) {
	var drift rest.Drift
	markets, _ := searchMarkets(rows, &drift)
	isClosed := func(m *market.Market) bool { return m.Status != market.StatusOpen && m.Status != market.StatusUnknown }
	open := slices.DeleteFunc(slices.Clone(markets), isClosed)
	p.hasOpen = len(open) > 0
	markets = slices.Concat(open, slices.DeleteFunc(markets, func(m *market.Market) bool { return !isClosed(m) }))
	for _, m := range markets {
		p.ids = append(p.ids, m.MarketID)
		for _, o := range m.Outcomes {
			if o.TokenID != "" {
				p.tokens = append(p.tokens, o.TokenID)
			}
		}
	}
	if len(p.ids) < 2 || len(p.tokens) < 2 {
		p.ids, p.err = nil, rest.UnknownForm(upstream.EndpointSearch, "a search finds fewer than two markets with tokens, so the venue cannot be probed")
		return
	}
	p.ids = p.ids[:2]
}

// paging decides how the search continues after its first page. page reads a further page.
func (p *probe) paging(rows rest.RowList, limit int, page func(pageStart) (rest.RowList, verdict)) {
	switch t, err := p.pageInfo(&searchPages, rows, pageStart{}, limit); {
	case err != nil || t.next.isStart():
	case t.next.cursor != "":
		p.table[settingSearchPaging] = byCursor
	case !t.next.guessed:
		p.table[settingSearchPaging] = byOffset
	default:
		further, got := page(t.next)
		switch {
		case got == answered && len(further.Rows) > 0 && !searchPages.repeats(t.next, further.Rows):
			p.table[settingSearchPaging] = byOffset
		case got == refused, got == answered && len(further.Rows) > 0: // an empty page may just be the end
			p.table[settingSearchPaging] = none
		}
	}
}

// markets decides how markets are requested by their ids. A list parameter is decided to be missing only if the venue finds one of
// the markets alone.
func (p *probe) markets(ctx context.Context, call upstream.Call) {
	if !p.undecided(settingMarketIDs) && (p.table[settingMarketIDs] != none || !p.undecided(settingMarketID)) {
		return
	}
	l := p.marketsByID()
	list := refused
	if p.undecided(settingMarketIDs) {
		if list = try(ctx, call, p, l, "ids", p.ids); list == answered {
			p.table[settingMarketIDs] = "ids"
			return
		}
	}
	names := marketIDNames
	if !p.undecided(settingMarketID) {
		names = []string{p.table[settingMarketID]}
	}
	for _, name := range names {
		switch try(ctx, call, p, l, name, p.ids[:1]) {
		case answered:
			p.table[settingMarketID] = name
			if list != unknown {
				p.table[settingMarketIDs] = none
			}
			return
		case unknown:
			return
		}
	}
}

// tokenMarkets decides how markets are requested by their tokens.
func (p *probe) tokenMarkets(ctx context.Context, call upstream.Call) {
	if !p.undecided(settingMarketTokens) {
		return
	}
	l, tokens := p.marketsByToken(), []string{p.tokens[0], p.tokens[len(p.tokens)-1]}
	switch list := try(ctx, call, p, l, "tokenIds", tokens); {
	case list == answered:
		p.table[settingMarketTokens] = "tokenIds"
	case list == unknown:
	case list == refused && p.table[settingMarketIDs] == none,
		try(ctx, call, p, l, p.value(settingMarketToken), tokens[:1]) == answered:
		p.table[settingMarketTokens] = none
	}
}

// spreads decides whether the venue has spreads, and for how many tokens. A venue that has none refuses both forms.
func (p *probe) spreads(ctx context.Context, call upstream.Call) {
	if !p.undecided(settingSpreads) {
		return
	}
	l, tokens := p.Client.spreads(), p.tokens[:2]
	list := try(ctx, call, p, l, "tokenIds", tokens)
	switch {
	case list == answered:
		p.table[settingSpreads] = byTokenIDs
		return
	case list == unknown:
		return
	}
	switch one := try(ctx, call, p, l, "tokenId", tokens[:1]); {
	case one == answered:
		p.table[settingSpreads] = byToken
	case one == refused && list == refused && p.hasOpen: // other markets may have no spreads
		p.table[settingSpreads] = byBook
	}
}

// urls decides whether the venue accepts URLs of the usual length. There must be enough tokens for a URL of more than half of it. If
// the venue refuses the URL, the setting becomes half of it.
func (p *probe) urls(ctx context.Context, call upstream.Call) {
	e := upstream.EndpointPrices
	slices.Sort(p.tokens)
	p.tokens = slices.Compact(p.tokens)
	tokens := p.lists(e, p.tokens, false)[0]
	if !p.undecided(settingMaxURL) || escapedBytes(tokens) < p.idBytes(e)/2 {
		return
	}
	values, err := priceLookup.call(ctx, call, p.Client, priceLookup.list, tokens, func(string) {})
	switch {
	case err == nil && len(values) > 0:
		p.table[settingMaxURL] = definitions[settingMaxURL].undecided
	case urlTooLong(err), rest.RefusesParameter(err):
		p.table[settingMaxURL] = strconv.Itoa(DefaultMaxURL / 2)
	default:
		p.judge(err, true)
	}
}
