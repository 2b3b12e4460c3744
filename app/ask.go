package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/upstream"
	"oddsgraph/internal/venue"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/internal/venue/stream"
)

const askMarkets = 5

// ask requests public data of every kind that the configured venue serves. For each kind it prints a line with the number of values
// that it read, and the parts of the data that it could not read. It returns an error if a request or a write to stdout failed, if
// ctx has ended, or if no venue is configured.
func ask(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	if embedded(cfg) {
		return errors.New("--ask requests data from a real venue; set --venue-url (ODDSGRAPH_VENUE_URL)")
	}
	var unread unreadParts
	key, err := venueKey(cfg.Venue, nil)
	if err != nil {
		return err
	}
	settings := venueConfig(cfg, cfg.Venue.URL, key)
	settings.Clock, settings.Observer, settings.Log = market.SystemClock{}, restParts{&unread}, log
	client, err := drivers.Open(settings)
	if err != nil {
		return err
	}
	defer client.Close()
	q := &inquiry{client: client, unread: &unread, out: stdout}
	probed := q.probe(ctx)
	m, tokenID := q.askREST(ctx)
	if cfg.Venue.Driver != drivers.Generic && m != nil {
		q.askSpecimens(ctx, drivers.Of(cfg.Venue.Driver).Variant)
	}
	socket := withProtocol(cfg, client, stream.Config{URL: cfg.StreamURL, Log: log, Observer: streamParts{&unread}})
	isOfVenue := cfg.StreamURL != "" || cfg.Venue.URL == "" // the driver's own stream does not belong to another URL
	if socket.URL != "" && isOfVenue && m != nil && ctx.Err() == nil {
		q.askStream(ctx, socket, cfg.Venue.Timeout, m, tokenID)
	}
	for e := upstream.EndpointBalance; int(e) < upstream.Endpoints; e++ {
		if err := client.Can(e); err != nil {
			q.print(e.String(), "unsupported: "+err.Error())
		}
	}
	if err := cashError(client); err != nil {
		q.print("cash", "unsupported: "+err.Error())
	}
	q.print("accounts", "not requested: "+noAccountsReason(cfg))
	probed()
	q.print("report", fmt.Sprintf("oddsgraph %s, driver %s, %s: %s", BuildVersion(), cfg.Venue.Driver, time.Now().UTC().Format(time.RFC3339), unread.report()))
	if err := errors.Join(q.readErr, ctx.Err()); err != nil {
		return err
	}
	return q.printErr
}

// askProbes is the greatest number of probes of a venue whose answers are unclear.
const askProbes = 4

// probe lets the driver find out how its venue is asked. It returns a function that prints the settings.
func (q *inquiry) probe(ctx context.Context) (print func()) {
	const what = "settings for --venue-table"
	driver, ok := q.client.(venue.Prober)
	if !ok {
		return func() { q.print(what, "none: the driver knows how its venue is asked") }
	}
	admit := func(ctx context.Context, _ upstream.Endpoint, read func(context.Context, upstream.Call) error) error {
		return read(ctx, upstream.Call{})
	}
	var err error
	for range askProbes {
		if err = driver.Probe(ctx, admit); market.CodeOf(err) != market.CodeUpstreamBadResponse {
			break
		}
	}
	q.unread.take() // the reads show what is unreadable
	return func() {
		q.read(what, func() (string, error) { return driver.Settings(), err })
	}
}

// noAccountsReason returns the reason why ask requests no data of accounts.
func noAccountsReason(cfg *config.Config) string {
	if accountsArePublic(cfg) && drivers.Of(cfg.Venue.Driver).PublicAccounts {
		return "only a caller knows their addresses"
	}
	if cfg.Venue.Name != "" { // a further venue
		return "they need credentials, which only the first venue takes"
	}
	return "they need a caller's credentials"
}

// inquiry is one run of ask.
type inquiry struct {
	client venue.Driver
	unread *unreadParts
	out    io.Writer
	// readErr is not nil if a read has returned an error. printErr is the first error of a write to out.
	readErr, printErr error
}

// askREST requests every kind of public data over REST. It begins with a search for askMarkets markets, and returns the first token that
// has a price, or else the first one, with its market. If the search finds no market with tokens, askREST requests nothing else and
// returns nil.
func (q *inquiry) askREST(ctx context.Context) (m *market.Market, tokenID string) {
	var found []*market.Market
	open := queries.Search{Status: []market.Status{market.StatusOpen}, Limit: askMarkets}
	q.request(upstream.EndpointSearch, "search", func() (string, error) {
		page, err := q.client.Search(ctx, upstream.Call{}, open)
		if err != nil || page == nil {
			return "nothing", err
		}
		found = page.Markets[:min(len(page.Markets), askMarkets)]
		return fmt.Sprintf("%d markets", len(page.Markets)), errors.Join(page.LeftOut...)
	})
	var ids, tokens []string
	slug, event := "", ""
	for _, m := range found {
		ids, slug, event = append(ids, m.MarketID), m.Slug, cmp.Or(event, m.EventID)
		for _, o := range m.Outcomes {
			tokens = append(tokens, o.TokenID)
		}
	}
	tokens = slices.DeleteFunc(tokens, func(id string) bool { return id == "" })
	if len(ids) == 0 || len(tokens) == 0 {
		q.print("everything else", "not requested: the search found no open market with tokens")
		return nil, ""
	}
	q.request(upstream.EndpointMarketsByID, "markets by id", func() (string, error) { return count(q.client.MarketsByID(ctx, upstream.Call{}, ids)) })
	q.request(upstream.EndpointMarketsByToken, "markets by token", func() (string, error) { return count(q.client.MarketsByToken(ctx, upstream.Call{}, tokens[:1])) })
	if slug != "" {
		q.request(upstream.EndpointMarketBySlug, "market by slug", func() (string, error) { return countOne(q.client.MarketBySlug(ctx, upstream.Call{}, slug)) })
	}
	tokenID = tokens[0]
	q.request(upstream.EndpointPrices, "prices", func() (string, error) {
		prices, err := q.client.Prices(ctx, upstream.Call{}, tokens)
		if i := slices.IndexFunc(prices, func(p upstream.Result[*market.Price]) bool { return p.Value != nil }); i >= 0 {
			tokenID = tokens[i]
		}
		return count(prices, err)
	})
	q.request(upstream.EndpointSpreads, "spreads", func() (string, error) { return count(q.client.Spreads(ctx, upstream.Call{}, tokens)) })
	q.request(upstream.EndpointBook, "book", func() (string, error) {
		return count(q.client.Books(ctx, upstream.Call{}, []queries.Book{{TokenID: tokens[0], Depth: queries.BookDepthStep(1)}}))
	})
	q.askPast(ctx, ids[0], tokens[0])
	q.askEvents(ctx, open, event)
	return found[slices.IndexFunc(found, func(m *market.Market) bool { return m.OutcomeByToken(tokenID) != nil })], tokenID
}

// askPast requests the price history of a token and the public trades of a market.
func (q *inquiry) askPast(ctx context.Context, marketID, tokenID string) {
	q.request(upstream.EndpointPriceHistory, "price history", func() (string, error) {
		today := market.DateOf(time.Now())
		read, err := q.client.PriceHistories(ctx, upstream.Call{}, []queries.PriceHistory{{TokenID: tokenID, From: today - 7, To: today}})
		if err != nil {
			return "nothing", err
		}
		h := read[0].Value
		if h == nil {
			return "nothing", read[0].Err
		}
		return fmt.Sprintf("%d points", len(h.Points)), errors.Join(h.LeftOut...)
	})
	q.request(upstream.EndpointMarketTrades, "public trades", func() (string, error) {
		page, err := q.client.MarketTrades(ctx, upstream.Call{}, queries.MarketTrades{MarketID: marketID, Limit: 100})
		if err != nil {
			return "nothing", err
		}
		return fmt.Sprintf("%d trades", len(page.Trades)), errors.Join(page.LeftOut...)
	})
}

// askEvents searches for events, and requests the list of categories. If id is not empty, it also requests the event with this id.
func (q *inquiry) askEvents(ctx context.Context, search queries.Search, id string) {
	q.request(upstream.EndpointEventSearch, "events", func() (string, error) {
		page, err := q.client.SearchEvents(ctx, upstream.Call{}, search)
		if err != nil {
			return "nothing", err
		}
		return fmt.Sprintf("%d events", len(page.Events)), errors.Join(page.LeftOut...)
	})
	if id != "" {
		q.request(upstream.EndpointEvent, "event by id", func() (string, error) {
			event, err := q.client.Event(ctx, upstream.Call{}, market.EventRef{EventID: id})
			if err != nil || event == nil {
				return "0 of 1", err
			}
			return fmt.Sprintf("%d markets", len(event.Markets)), errors.Join(event.LeftOut...)
		})
	}
	q.request(upstream.EndpointCategories, "categories", func() (string, error) {
		categories, err := q.client.Categories(ctx, upstream.Call{})
		if err != nil {
			return "nothing", err
		}
		return fmt.Sprintf("%d categories", len(categories.List)), nil
	})
}

// request calls q.read if the venue serves the endpoint e. Otherwise it prints that the venue does not support this kind of data.
func (q *inquiry) request(e upstream.Endpoint, kind string, call func() (string, error)) {
	if err := q.client.Can(e); err != nil {
		q.print(kind, "unsupported: "+err.Error())
		return
	}
	q.read(kind, call)
}

// read calls fetch. It prints the text and the error that fetch returns, and the parts of responses that could not be read.
func (q *inquiry) read(kind string, fetch func() (string, error)) {
	text, err := fetch()
	if err != nil {
		text = strings.TrimPrefix(text+"; error: "+err.Error(), "; ")
		q.readErr = errors.New("the venue's data could not be read completely; see above")
	}
	for _, part := range q.unread.take() {
		text += "; unreadable: " + part
	}
	q.print(kind, text)
}

func (q *inquiry) print(kind, text string) {
	if _, err := fmt.Fprintf(q.out, "%s: %s\n", kind, strings.ReplaceAll(text, "\n", "; ")); q.printErr == nil {
		q.printErr = err
	}
}

// count returns a text such as "2 of 3" for a read of several keys, with the first error of the read.
func count[T any](results []upstream.Result[*T], err error) (string, error) {
	n := 0
	for _, r := range results {
		if err == nil {
			err = r.Err
		}
		if r.Value != nil {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(results)), err
}

// countOne returns "1 of 1" or "0 of 1" for a read of one key, with the error of the read.
func countOne[T any](value *T, err error) (string, error) {
	if value == nil {
		return "0 of 1", err
	}
	return "1 of 1", err
}
