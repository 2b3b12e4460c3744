package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"oddsgraph/app/pairs"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/reads"
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
	return withVenues(ctx, cfg, log, func(ctx context.Context, units []*unit) error {
		var tokens []string
		for _, q := range list {
			for _, l := range q.Legs {
				tokens = append(tokens, l.Token)
			}
		}
		markets := readMarkets(ctx, units, tokens)
		wrong := 0
		for _, q := range list {
			c := &questionCheck{units: units, markets: markets, accept: accept}
			for _, l := range q.Legs {
				c.add(q, l)
			}
			text := fmt.Sprintf("%s (%s): %s\n%s", q.ID, q.Match, q.Title, &c.states)
			if c.wrong {
				wrong++
			}
			if c.unread || accept {
				text += "\n" + pairs.Text(width(), c.legs...)
			}
			if c.unread && !accept {
				text += fmt.Sprintf("If the match is still right: oddsgraph questions check %s --accept %s\n\n", path, q.ID)
			}
			if _, err := io.WriteString(stdout, text); err != nil {
				return err
			}
			if accept && !c.wrong {
				return c.confirm(path, content, q, stdout)
			}
		}
		if wrong > 0 {
			return fmt.Errorf("%s: %d of %d questions are not in order; see above", path, wrong, len(list))
		}
		return nil
	})
}

// questionCheck is the check of one question. It is wrong if a leg has no rules text or one that is not confirmed, unless accept
// confirms it. The legs of a RELATED question are never compared, so their texts may change, and their markets may end.
type questionCheck struct {
	units         []*unit
	markets       map[string]reads.Result[*market.Market]
	accept        bool
	wrong, unread bool // unread: there is a text that is not confirmed
	states        strings.Builder
	legs          []pairs.Leg
	hashes        []string
}

func (c *questionCheck) add(q *questions.Question, l questions.Leg) {
	read := c.markets[l.Token]
	m, state := read.Value.Value, ""
	switch {
	case read.Err != nil:
		state = "it could not be read: " + read.Err.Error()
	case m == nil:
		state = "the venue does not know the token"
	case m.Description == "":
		state = "the venue gives no rules text"
	}
	if m != nil {
		c.legs = append(c.legs, pairs.Leg{Venue: title(c.units[c.units[0].names.Find(l.Token)+1].cfg), Market: m})
	}
	if state != "" {
		c.wrong = c.wrong || c.accept || q.Match != questions.Related
	} else {
		hash := questions.RulesHash(m.Description)
		c.hashes = append(c.hashes, hash)
		switch l.RulesSHA256 {
		case hash:
			state = "the rules are the confirmed ones"
		case "":
			state = "no rules are confirmed; the present text has the hash " + hash
		default:
			state = fmt.Sprintf("THE RULES HAVE CHANGED: %s is confirmed, the present text has the hash %s", l.RulesSHA256, hash)
		}
		if hash != l.RulesSHA256 && q.Match != questions.Related {
			c.unread, c.wrong = true, c.wrong || !c.accept
		}
		if m.Status != market.StatusOpen {
			state += fmt.Sprintf("; the market is %s", m.Status)
		}
	}
	_, _ = fmt.Fprintf(&c.states, "  %s: %s\n", l.Token, state)
}

// confirm writes the hashes of the present rules texts of a question into the file with the given content.
func (c *questionCheck) confirm(path string, content []byte, q *questions.Question, stdout io.Writer) error {
	if err := replaceFile(path, content, questions.Accept(content, q, c.hashes)); err != nil {
		return fmt.Errorf("%s is unchanged: %w", path, err)
	}
	_, err := fmt.Fprintf(stdout, "%s confirms these texts now. Its checkedAt is still %s, by %q.\n", path, q.CheckedAt, q.CheckedBy)
	return err
}

// replaceFile replaces the content of a file by a rename, so that no reader sees a part of it, and keeps the mode. It returns an error
// if the file has no longer the old content.
func replaceFile(path string, old, content []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	present, readErr := os.ReadFile(path)
	switch {
	case err != nil || readErr != nil:
		return errors.Join(err, readErr)
	case !bytes.Equal(present, old):
		return errors.New("it has changed meanwhile; run the command again")
	}
	return os.Rename(f.Name(), path)
}
