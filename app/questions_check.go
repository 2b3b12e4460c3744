package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"

	"oddsgraph/app/pairs"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market/questions"
)

// checkQuestions compares the rules texts of the venues with those that a questions file confirms. It prints the texts that a person
// has to read, and returns an error if there are any. With --accept it looks at one question, and confirms its texts in the file.
func checkQuestions(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer) error {
	path := cfg.QuestionsFile
	if path == "" {
		return errors.New("questions check needs the path of a file, or --questions-file (ODDSGRAPH_QUESTIONS_FILE)")
	}
	content, set, err := readQuestions(cfg, log)
	if err != nil {
		return err
	}
	list, accepted := set.All(), slices.Index(set.All(), set.Find(cfg.Accept))
	switch {
	case accepted >= 0:
		list = list[accepted : accepted+1]
	case cfg.Accept != "":
		return fmt.Errorf("--accept: %s has no question %q; want the id of one of its %d questions", path, cfg.Accept, len(list))
	}
	var tokens []string
	for _, q := range list {
		for _, l := range q.Legs {
			tokens = append(tokens, l.Token)
		}
	}
	return withVenues(ctx, cfg, log, func(ctx context.Context, units []*unit) error {
		legs, wrong := readLegs(ctx, units, tokens), 0
		for _, q := range list {
			text, ok := checkQuestion(q, legs)
			if !ok {
				wrong++
			}
			if _, err := io.WriteString(stdout, text); err != nil {
				return err
			}
		}
		switch {
		case accepted >= 0:
			return accept(path, content, accepted, list[0], legs, stdout)
		case wrong > 0:
			return fmt.Errorf("%s: %d of %d questions are not in order; if you have read the texts and a match is still right, use --accept with its id", path, wrong, len(list))
		}
		return nil
	})
}

// checkQuestion returns what to print of a question, and whether it is in order. The legs of a RELATED question are never compared, so
// their texts may change.
func checkQuestion(q *questions.Question, legs map[string]pairs.Leg) (text string, ok bool) {
	text, ok = fmt.Sprintf("%s (%s): %s\n", q.ID, q.Match, q.Title), true
	var all []pairs.Leg
	for _, l := range q.Legs {
		leg := legs[l.Token]
		all = append(all, leg)
		state := "the rules are the confirmed ones"
		if hash := leg.Hash(); leg.Problem() != "" {
			state, ok = leg.Problem(), false
		} else if hash != l.RulesSHA256 {
			state, ok = fmt.Sprintf("THE RULES ARE NOT THE CONFIRMED ONES: their hash is %s, the file has %s", hash, cmp.Or(l.RulesSHA256, "none")), false
		}
		text += fmt.Sprintf("  %s: %s\n", l.Token, state)
	}
	if ok = ok || q.Match == questions.Related; !ok {
		text += "\n" + pairs.Text(width(), all...)
	}
	return text, ok
}

// accept confirms the present rules texts of a question in the file with the given content, in which the question has an index.
func accept(path string, content []byte, index int, q *questions.Question, legs map[string]pairs.Leg, stdout io.Writer) error {
	var hashes []string
	for _, l := range q.Legs {
		if problem := legs[l.Token].Problem(); problem != "" {
			return fmt.Errorf("%s: %s", l.Token, problem)
		}
		hashes = append(hashes, legs[l.Token].Hash())
	}
	present, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(present, content) {
		err = fmt.Errorf("%s has changed meanwhile; run the command again", path)
	}
	if err == nil {
		content, err = pairs.Accept(content, index, hashes)
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o600) // the mode stays as it is
	}
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s confirms these texts now. Its checkedAt is still %s, by %q.\n", path, q.CheckedAt, q.CheckedBy)
	}
	return err
}
