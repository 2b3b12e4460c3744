package generic

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue/rest"
	"oddsgraph/internal/venue/wire"
)

const (
	// maxProbeCalls bounds the HTTP calls of one Probe.
	maxProbeCalls = 10
	// maxUnclear is the number of unclear answers, each in another Probe, that show that the venue lacks a form. One may be a failure.
	maxUnclear = 4
)

// Settings returns the decided settings in the form that ParseTable reads.
func (c *Client) Settings() string { return c.table.Load().String() }

// probed are the settings that Probe decides. Settings about accounts stay undecided, because their reads need a caller's credentials.
var probed = []setting{
	settingMarketIDs, settingMarketTokens, settingSpreads, settingSearchOptions, settingSearchPaging, settingMaxURL,
}

// Undecided reports whether Probe would ask the venue.
func (c *Client) Undecided() bool { return c.table.Load().lacks(probed...) }

// Probe asks the venue how it is asked, as far as the table leaves it undecided, with at most ten calls. It decides a setting only if
// an answer shows the value. A response with status 429 or 5xx shows nothing. It must not be called concurrently.
func (c *Client) Probe(ctx context.Context, admit upstream.Admit) error {
	before := *c.table.Load()
	p := &probe{table: before, admit: admit}
	p.reading = reading{Client: c, told: &p.table}
	if c.Undecided() {
		p.search(ctx)
	}
	if len(p.ids) > 0 {
		p.markets(ctx)
		p.tokenMarkets(ctx)
		p.spreads(ctx)
		p.urls(ctx)
	}
	if p.table != before {
		c.table.Store(&p.table)
		c.Log().Info("the venue has been probed, and is asked in this way until the program stops", "venue_table", p.table.String())
	}
	return p.err
}

// probe is one run of Probe. The table of its reading has what has been decided so far.
type probe struct {
	reading
	table Table
	admit upstream.Admit
	calls int // the HTTP calls so far
	// err is the first error that may not come again.
	err error
	// ids are two markets, and tokens are the tokens of all markets that the search has found, those of open markets first. hasOpen
	// reports whether one of the markets is open.
	ids, tokens []string
	hasOpen     bool
}

// probePermit counts the HTTP calls of a probe, and passes on what the permit of outer says.
type probePermit struct {
	*probe
	outer upstream.Call
}

func (p probePermit) AdmitCall(ctx context.Context) error {
	if p.calls++; p.calls > maxProbeCalls {
		return market.Errorf(market.CodeRateLimited, "a probe makes at most %d calls", maxProbeCalls)
	}
	return p.outer.Admit(ctx)
}

func (p probePermit) Answered(a upstream.Answer) { p.outer.Answered(a) }

// ask makes one call. read returns its error, and whether the answer has everything that was requested.
func (p *probe) ask(ctx context.Context, e upstream.Endpoint, read func(ctx context.Context, call upstream.Call) (all bool, err error)) verdict {
	all := false
	err := p.admit(ctx, e, func(ctx context.Context, call upstream.Call) (err error) {
		all, err = read(ctx, upstream.Call{Permit: probePermit{p, call}})
		return err
	})
	return p.judge(err, all)
}

// verdict is what a call shows about the form of its request.
type verdict uint8

const (
	unknown  verdict = iota // nothing: the venue is limited, fails, or does not respond
	unclear                 // the venue reports an error of unknown meaning, or its answer lacks something that was requested
	refused                 // the venue refuses the form, or its answer is about something else
	answered                // the answer has everything that was requested
)

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
func try[T any](ctx context.Context, p *probe, l *lookup[T], parameter string, ids []string) verdict {
	return p.ask(ctx, l.endpoint, func(ctx context.Context, call upstream.Call) (bool, error) {
		l.reading.call = call
		values, err := l.ask(ctx, parameter, ids, func(string) {})
		return len(values) == len(ids), err
	})
}

// decideMissing decides a setting for a venue that has answered without a form, after got for the form itself.
func (p *probe) decideMissing(s setting, value string, got verdict) {
	switch {
	case got == unknown:
	case got == unclear && p.unclear[s]+1 < maxUnclear:
		p.unclear[s]++
		p.err = cmp.Or(p.err, error(market.Errorf(market.CodeUpstreamBadResponse, "the venue's answer does not show whether it knows another value of %s", s)))
	default:
		p.table[s] = value
	}
}

func (p *probe) search(ctx context.Context) {
	q := queries.Search{Sort: queries.SortRelevance, Direction: queries.Descending, Limit: maxPageSize}
	page := func(start pageStart) (rows rest.RowList, got verdict) {
		got = p.ask(ctx, upstream.EndpointSearch, func(ctx context.Context, call upstream.Call) (ok bool, err error) {
			payload, err := p.Get(ctx, call, searchRequest(q, start, p.table[settingSearchOptions] == no))
			rows, ok = searchRows(payload)
			return ok, err
		})
		return rows, got
	}
	rows, got := page(pageStart{})
	if got == refused && !p.decided(settingSearchOptions) {
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
	if !p.decided(settingSearchOptions) {
		p.table[settingSearchOptions] = yes
	}
	p.collect(rows.Rows)
	if !p.decided(settingSearchPaging) {
		p.paging(rows, q.Limit, page)
	}
}

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

func (p *probe) paging(rows rest.RowList, limit int, page func(pageStart) (rest.RowList, verdict)) {
	switch t, err := p.pageInfo(&searchPages, rows, pageStart{}, limit); {
	case err != nil || t.next.isStart():
	case t.next.Cursor != "":
		p.table[settingSearchPaging] = byCursor
	case !t.next.Guessed:
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
func (p *probe) markets(ctx context.Context) {
	if p.decided(settingMarketIDs) && (p.table[settingMarketIDs] != none || p.decided(settingMarketID)) {
		return
	}
	l, list := p.marketsByID(), refused
	if !p.decided(settingMarketIDs) {
		if list = try(ctx, p, l, "ids", p.ids); list == answered {
			p.table[settingMarketIDs] = "ids"
			return
		}
	}
	names := []string{"marketId", "id"} // the names that venues use
	if p.decided(settingMarketID) {
		names = []string{p.table[settingMarketID]}
	}
	for _, name := range names {
		switch try(ctx, p, l, name, p.ids[:1]) {
		case answered:
			p.table[settingMarketID] = name
			p.decideMissing(settingMarketIDs, none, list)
			return
		case unknown:
			return
		}
	}
}

func (p *probe) tokenMarkets(ctx context.Context) {
	if p.decided(settingMarketTokens) {
		return
	}
	l, tokens := p.marketsByToken(), []string{p.tokens[0], p.tokens[len(p.tokens)-1]}
	switch list := try(ctx, p, l, "tokenIds", tokens); {
	case list == answered:
		p.table[settingMarketTokens] = "tokenIds"
	case list == unknown:
	case list == refused && p.table[settingMarketIDs] == none,
		try(ctx, p, l, p.value(settingMarketToken), tokens[:1]) == answered:
		p.decideMissing(settingMarketTokens, none, list)
	}
}

// spreads decides whether the venue has spreads, and for how many tokens. A venue that has none refuses both forms.
func (p *probe) spreads(ctx context.Context) {
	if p.decided(settingSpreads) {
		return
	}
	l, tokens := p.reading.spreads(), p.tokens[:2]
	list := try(ctx, p, l, byTokenIDs, tokens)
	switch list {
	case answered:
		p.table[settingSpreads] = byTokenIDs
		return
	case unknown:
		return
	}
	switch one := try(ctx, p, l, byToken, tokens[:1]); {
	case one == answered:
		p.decideMissing(settingSpreads, byToken, list)
	case one == refused && list == refused && p.hasOpen: // other markets may have no spreads
		p.table[settingSpreads] = byBook
	}
}

// urls decides whether the venue accepts URLs of the usual length. There must be enough tokens for a URL of more than half of it. If
// the venue refuses the URL, the setting becomes half of it.
func (p *probe) urls(ctx context.Context) {
	e := upstream.EndpointPrices
	slices.Sort(p.tokens)
	p.tokens = slices.Compact(p.tokens)
	tokens := p.lists(e, p.tokens, false)[0]
	if p.decided(settingMaxURL) || escapedBytes(tokens) < p.idBytes(e)/2 {
		return
	}
	p.ask(ctx, e, func(ctx context.Context, call upstream.Call) (bool, error) {
		l := p.prices()
		l.reading.call = call
		values, err := l.ask(ctx, l.list, tokens, func(string) {})
		switch {
		case err == nil && len(values) > 0:
			p.table[settingMaxURL] = definitions[settingMaxURL].undecided
		case urlTooLong(err), rest.RefusesParameter(err):
			p.table[settingMaxURL] = strconv.Itoa(DefaultMaxURL / 2)
			return true, nil
		}
		return true, err
	})
}
