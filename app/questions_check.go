package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"oddsgraph/app/pairs"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// checkQuestions compares the rules texts of the venues with those that a questions file confirms. It prints the texts that a person
// has to read, and returns an error if there are any. With --accept it prints the texts of one question and confirms them in the file.
func checkQuestions(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	path, accept := cfg.QuestionsFile, cfg.Accept != ""
	if path == "" {
		return errors.New("questions check needs the path of a file, or --questions-file (ODDSGRAPH_QUESTIONS_FILE)")
	}
	content, set, err := readQuestions(cfg)
	if err != nil {
		return err
	}
	list := set.All()
	if accept {
		if list = []*questions.Question{set.Find(cfg.Accept)}; list[0] == nil {
			return fmt.Errorf("--accept: %s has no question %q; want the id of one of its %d questions", path, cfg.Accept, len(set.All()))
		}
	}
	var tokens []string
	for _, q := range list {
		for _, l := range q.Legs {
			tokens = append(tokens, l.Token)
		}
	}
	var legs map[string]pairs.Leg
	if err = withVenues(ctx, cfg, log, func(ctx context.Context, units []*unit) error {
		legs = readLegs(ctx, units, tokens)
		return nil
	}); err != nil {
		return err
	}
	wrong := 0
	for _, q := range list {
		text, ok := checkQuestion(q, legs, path, accept)
		if !ok {
			wrong++
		}
		if _, err := io.WriteString(stdout, text); err != nil {
			return err
		}
	}
	switch {
	case wrong > 0:
		return fmt.Errorf("%s: %d of %d questions are not in order; see above", path, wrong, len(list))
	case accept:
		return confirm(path, content, list[0], legs, stdout)
	}
	return nil
}

// checkQuestion returns what to print of a question, and whether it is in order: its rules texts are the confirmed ones, or, with
// accept, can be confirmed. The legs of a RELATED question are never compared, so their texts may change, and their markets may end.
func checkQuestion(q *questions.Question, legs map[string]pairs.Leg, path string, accept bool) (text string, ok bool) {
	text = fmt.Sprintf("%s (%s): %s\n", q.ID, q.Match, q.Title)
	readable, confirmed := true, true
	var all []pairs.Leg
	for _, l := range q.Legs {
		leg := legs[l.Token]
		all = append(all, leg)
		hash, state := leg.Hash(), "the rules are the confirmed ones"
		switch {
		case leg.Problem() != "":
			state, readable = leg.Problem(), false
		case l.RulesSHA256 == "":
			state = "no rules are confirmed; the present text has the hash " + hash
		case l.RulesSHA256 != hash:
			state = fmt.Sprintf("THE RULES HAVE CHANGED: %s is confirmed, the present text has the hash %s", l.RulesSHA256, hash)
		}
		if leg.Market != nil && leg.Status != market.StatusOpen {
			state += fmt.Sprintf("; the market is %s", leg.Status)
		}
		confirmed = confirmed && hash == l.RulesSHA256
		text += fmt.Sprintf("  %s: %s\n", l.Token, state)
	}
	ok = readable && (accept || confirmed) || q.Match == questions.Related && !accept
	if !ok || accept {
		text += "\n" + pairs.Text(width(), all...)
	}
	if !ok && readable {
		text += fmt.Sprintf("If the match is still right: oddsgraph questions check %s --accept %s\n\n", path, q.ID)
	}
	return text, ok
}

// confirm writes the hashes of the present rules texts of a question into the file with the given content.
func confirm(path string, content []byte, q *questions.Question, legs map[string]pairs.Leg, stdout io.Writer) error {
	var hashes []string
	for _, l := range q.Legs {
		hashes = append(hashes, legs[l.Token].Hash())
	}
	switch present, err := os.ReadFile(path); {
	case err != nil:
		return err
	case !bytes.Equal(present, content):
		return fmt.Errorf("%s has changed meanwhile; run the command again", path)
	}
	if err := os.WriteFile(path, pairs.Accept(content, q.ID, hashes), 0o600); err != nil { // the mode stays as it is
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s confirms these texts now. Its checkedAt is still %s, by %q.\n", path, q.CheckedAt, q.CheckedBy)
	return err
}
