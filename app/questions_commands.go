package app

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"oddsgraph/app/pairs"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/queries"
	"oddsgraph/internal/market/questions"
)

const (
	proposePages  = 500              // of a hundred markets, from each venue
	questionsTime = 10 * time.Minute // of a command, which may wait for the rate limits of the venues
	defaultWidth  = 120              // of an output that is no terminal
)

// withVenues opens the venues without their streams, and calls f.
func withVenues(ctx context.Context, cfg *config.Config, log *slog.Logger, f func(context.Context, []*unit) error) error {
	if err := validate(cfg); err != nil {
		return err
	}
	if cfg.Log.Level > slog.LevelDebug {
		log = slog.New(slog.DiscardHandler) // the errors have all reasons
	}
	a := &App{process: process{log: log, clock: market.SystemClock{}, started: time.Now()}}
	defer func() { a.opened.close() }()
	if _, err := a.openUnits(cfg, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, questionsTime)
	group, ctx := errgroup.WithContext(ctx)
	for _, u := range a.units() {
		if u.demo != nil {
			u.demo.still = true
			group.Go(func() error { return u.demo.serve(ctx) })
		}
	}
	group.Go(func() error {
		defer cancel()
		return f(ctx, a.units())
	})
	return group.Wait()
}

const proposeHead = `Read: %d open markets of %s, %d of %s. %d pairs may ask the same question. The
most similar titles are first, which proves nothing.

Read both rules texts, and check that the tokens stand for the same outcome.
Then set "match" to EXACT (the same bet), NEAR (list the "differences") or
RELATED (never compared, and not proposed again), write your name into
"checkedBy", and put the entry into the list of your questions file:
{"version": 1, "questions": [ ]}
`

// propose prints markets of the first two venues that may ask the same question. If a venue cannot be read to the end, it prints what
// there is, and returns the error.
func propose(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	if len(cfg.More) == 0 {
		return errors.New("questions propose compares two venues, and one is configured; set --more-venues (ODDSGRAPH_MORE_VENUES), or try --demo-driver=polymarket,kalshi")
	}
	_, known, err := readQuestions(cfg, log)
	if err != nil {
		return err
	}
	return withVenues(ctx, cfg, log, func(ctx context.Context, units []*unit) error {
		var open [2][]*market.Market
		var failed [3]error
		var group sync.WaitGroup
		for i, u := range units[:2] {
			group.Go(func() { open[i], failed[i] = u.openMarkets(ctx) })
		}
		group.Wait()
		candidates := pairs.Candidates(open[0], open[1], known)
		var tokens []string
		for _, c := range candidates {
			tokens = append(tokens, c[:]...)
		}
		legs := readLegs(ctx, units, tokens) // lists have no rules texts
		out := bufio.NewWriter(stdout)
		_, _ = fmt.Fprintf(out, proposeHead, len(open[0]), title(units[0].cfg), len(open[1]), title(units[1].cfg), len(candidates)) // Flush returns the error
		for i, c := range candidates {
			first, second := legs[c[0]], legs[c[1]]
			if first.Market == nil || second.Market == nil {
				failed[2] = cmp.Or(failed[2], first.Err, second.Err)
				continue
			}
			_, _ = fmt.Fprintf(out, "\n===== %d of %d =====\n\n%s%s", i+1, len(candidates), pairs.Text(width(), first, second), pairs.Entry(i+1, time.Now(), first, second))
		}
		return errors.Join(append(failed[:], out.Flush())...)
	})
}

// openMarkets returns the open markets of the venue, at most proposePages pages.
func (u *unit) openMarkets(ctx context.Context) (all []*market.Market, err error) {
	search := queries.Search{Status: []market.Status{market.StatusOpen}, Limit: 100}
	for range proposePages {
		read := u.Cache.Searches().Fetch(ctx, []queries.SearchKey{search.Key()})[0]
		if read.Err != nil {
			return all, fmt.Errorf("%s: after %d markets: %w", title(u.cfg), len(all), read.Err)
		}
		all = append(all, read.Value.Value.Markets...)
		if search.Page = read.Value.Value.Next; search.Page == "" {
			return all, nil
		}
	}
	return all, fmt.Errorf("%s has more open markets; only the first %d were compared", title(u.cfg), len(all))
}

// readLegs reads the markets of tokens as the service reads them for a question.
func readLegs(ctx context.Context, units []*unit, tokens []string) map[string]pairs.Leg {
	legs := make(map[string]pairs.Leg)
	for i, u := range units {
		var keys []market.MarketRef
		for _, token := range tokens {
			if u.names.Find(token) == i-1 {
				keys = append(keys, market.MarketRef{By: market.ByToken, Value: token})
			}
		}
		for k, read := range u.Cache.Markets().Fetch(ctx, keys) {
			legs[keys[k].Value] = pairs.Leg{Venue: title(u.cfg), Token: keys[k].Value, Market: read.Value.Value, Err: read.Err}
		}
	}
	return legs
}

// readQuestions returns the content of --questions-file, and its questions. Without a file, both are empty.
func readQuestions(cfg *config.Config, log *slog.Logger) (content []byte, set *questions.Set, err error) {
	if cfg.QuestionsFile == "" {
		return nil, &questions.Set{}, nil
	}
	_, err = watchQuestions(cfg, log, func(c []byte, s *questions.Set) { content, set = c, s })
	return content, set, err
}
