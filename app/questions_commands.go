package app

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tidwall/sjson"
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
func withVenues(ctx context.Context, cfg *config.Config, f func(context.Context, []*unit) error) error {
	if err := validate(cfg); err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler) // the errors have all reasons
	a := &App{process: process{log: log, clock: market.SystemClock{}, started: time.Now()}}
	defer func() { a.opened.close() }()
	if _, err := a.openUnits(cfg, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, questionsTime)
	group, ctx := errgroup.WithContext(ctx)
	for _, u := range a.Venues {
		if u.demo != nil {
			u.demo.still = true
			group.Go(func() error { return u.demo.serve(ctx) })
		}
	}
	group.Go(func() error {
		defer cancel()
		return f(ctx, a.Venues)
	})
	return group.Wait()
}

const proposeHead = `Read: %d open markets of %s, %d of %s. %d pairs may ask the same question, the most similar titles first.
Read both rules texts, and check that the tokens stand for the same outcome. Then set "match" to EXACT (the same bet), NEAR (list
the "differences") or RELATED (never compared, and not proposed again), write your name into "checkedBy", and put the entry into
the list of your questions file: {"version": 1, "questions": [ ]}
`

// propose prints markets of the first two venues that may ask the same question. If a venue cannot be read to the end, it prints what
// there is, and returns the error.
func propose(ctx context.Context, cfg *config.Config, stdout io.Writer) error {
	if len(cfg.More) == 0 {
		return errors.New("questions propose compares two venues, and one is configured; set --more-venues (ODDSGRAPH_MORE_VENUES), or try --demo-driver=polymarket,kalshi")
	}
	_, known, err := readQuestions(cfg)
	if err != nil {
		return err
	}
	return withVenues(ctx, cfg, func(ctx context.Context, units []*unit) error {
		var open [2][]*market.Market
		var failed [2]error
		var group sync.WaitGroup
		for i, u := range units[:2] {
			group.Go(func() { open[i], failed[i] = u.openMarkets(ctx) })
		}
		group.Wait()
		candidates := pairs.Candidates(open[0], open[1], known)
		legs := readLegs(ctx, units, candidates) // lists have no rules texts
		out := bufio.NewWriter(stdout)
		_, _ = fmt.Fprintf(out, proposeHead, len(open[0]), title(units[0].cfg), len(open[1]), title(units[1].cfg), len(candidates)) // Flush returns the error
		var unread error
		for n, q := range candidates {
			q.CheckedAt = market.DateOf(time.Now())
			for i, l := range q.Legs {
				leg := legs[l.Token]
				if q.Legs[i].RulesSHA256 = leg.Hash; leg.Market == nil {
					unread = fmt.Errorf("%s: %s", l.Token, leg.Problem)
				}
			}
			entry, err := json.Marshal(q, jsontext.WithIndent("  ")) // without a match, it is invalid until a person has decided
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(out, "\n===== %d of %d =====\n\n%s%s\n", n+1, len(candidates), pairs.Text(width(), q, legs), entry)
		}
		return errors.Join(failed[0], failed[1], unread, out.Flush())
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

// readLegs reads the markets of tokens of questions as the service reads them.
func readLegs(ctx context.Context, units []*unit, list []*questions.Question) map[string]pairs.Leg {
	legs := make(map[string]pairs.Leg)
	for i, u := range units {
		var keys []market.MarketRef
		for _, q := range list {
			for _, l := range q.Legs {
				if u.names.Find(l.Token) == i {
					keys = append(keys, market.MarketRef{By: market.ByToken, Value: l.Token})
				}
			}
		}
		for k, read := range u.Cache.Markets().Fetch(ctx, keys) {
			legs[keys[k].Value] = pairs.NewLeg(title(u.cfg), read.Value.Value, read.Err)
		}
	}
	return legs
}

// readQuestions returns the content of --questions-file, and its questions. Without a file, both are empty.
func readQuestions(cfg *config.Config) ([]byte, *questions.Set, error) {
	if cfg.QuestionsFile == "" {
		return nil, &questions.Set{}, nil
	}
	content, err := os.ReadFile(cfg.QuestionsFile)
	if err != nil {
		return nil, nil, err
	}
	set, err := pairs.Parse(content, names(cfg))
	if err != nil {
		err = fmt.Errorf("%s: %w", cfg.QuestionsFile, err)
	}
	return content, set, err
}

// checkQuestions compares the rules texts of the venues with those that a questions file confirms. It prints the texts that a person
// has to read, and returns an error if there are any. With --accept it looks at one question, and confirms its texts in the file.
func checkQuestions(ctx context.Context, cfg *config.Config, stdout io.Writer) error {
	if cfg.QuestionsFile == "" {
		return errors.New("questions check needs the path of a file, or --questions-file (ODDSGRAPH_QUESTIONS_FILE)")
	}
	content, set, err := readQuestions(cfg)
	if err != nil {
		return err
	}
	list, accepted := set.All(), set.Find(cfg.Accept)
	if cfg.Accept != "" {
		if accepted == nil {
			return fmt.Errorf("--accept: %s has no question %q", cfg.QuestionsFile, cfg.Accept)
		}
		list = []*questions.Question{accepted}
	}
	return withVenues(ctx, cfg, func(ctx context.Context, units []*unit) error {
		legs, wrong := readLegs(ctx, units, list), 0
		for _, q := range list {
			text, ok := checkQuestion(q, legs)
			if !ok || accepted != nil {
				text += "\n" + pairs.Text(width(), q, legs)
			}
			if _, err := io.WriteString(stdout, text); err != nil {
				return err
			}
			if !ok {
				wrong++
			}
		}
		switch {
		case accepted != nil:
			return accept(cfg.QuestionsFile, content, slices.Index(set.All(), accepted), accepted, legs, stdout)
		case wrong > 0:
			return fmt.Errorf("%s: %d of %d questions are not in order; if you have read the texts and a match is still right, use --accept with its id", cfg.QuestionsFile, wrong, len(list))
		}
		return nil
	})
}

// checkQuestion returns a line for a question and for each leg, and whether the question is in order. The legs of a RELATED question are
// never compared, so their texts may change.
func checkQuestion(q *questions.Question, legs map[string]pairs.Leg) (text string, ok bool) {
	text, ok = fmt.Sprintf("%s (%s): %s\n", q.ID, q.Match, q.Title), true
	for _, l := range q.Legs {
		leg, state := legs[l.Token], "the rules are the confirmed ones"
		if leg.Problem != "" {
			state, ok = leg.Problem, false
		} else if leg.Hash != l.RulesSHA256 {
			state, ok = fmt.Sprintf("THE RULES ARE NOT THE CONFIRMED ONES: their hash is %s, the file has %s", leg.Hash, cmp.Or(l.RulesSHA256, "none")), false
		}
		if leg.Market != nil && leg.Status != market.StatusOpen {
			state += fmt.Sprintf("; the market is %s", leg.Status)
		}
		text += fmt.Sprintf("  %s: %s\n", l.Token, state)
	}
	return text, ok || q.Match == questions.Related
}

// accept confirms the present rules texts of a question in the file, in which the question has an index. Everything else in the file
// stays as it was read.
func accept(path string, read []byte, index int, q *questions.Question, legs map[string]pairs.Leg, stdout io.Writer) (err error) {
	content := read
	for i, l := range q.Legs {
		if problem := legs[l.Token].Problem; problem != "" {
			return fmt.Errorf("%s: %s", l.Token, problem)
		}
		if content, err = sjson.SetBytes(content, fmt.Sprintf("questions.%d.legs.%d.rulesSha256", index, i), legs[l.Token].Hash); err != nil {
			return err
		}
	}
	if present, err := os.ReadFile(path); err != nil || !bytes.Equal(present, read) {
		return cmp.Or(err, fmt.Errorf("%s has changed meanwhile; run the command again", path))
	}
	if err = os.WriteFile(path, content, 0o600); err == nil { // the mode stays as it is
		_, err = fmt.Fprintf(stdout, "%s confirms these texts now. Its checkedAt is still %s, by %q.\n", path, q.CheckedAt, q.CheckedBy)
	}
	return err
}
