package app

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
)

// TestDemoQuestions checks that two embedded venues have three questions, that the tokens of each are the same outcome, and which rules
// texts are the confirmed ones.
func TestDemoQuestions(t *testing.T) {
	for drivers, wanted := range map[string]int{"polymarket,kalshi": 3, "kalshi,polymarket": 3, "generic,kalshi,polymarket": 3, "generic": 0} {
		s := openVenues(t, "--demo-markets=300 --demo-driver="+drivers)
		all, err := demoQuestions(s.Venues)
		if err != nil || len(all) != wanted {
			t.Fatalf("%s: got %d questions and the error %v, want %d", drivers, len(all), err, wanted)
		}
		var matches []questions.Match
		check := func(step string, changed, equal []bool) {
			for i, q := range all {
				matches = append(matches, q.Match)
				var tokens, texts []string
				for at, u := range s.Venues[:2] {
					id, ok := market.CutVenue(u.name, q.Legs[at].Token)
					token := u.demo.engine.DemoID(id)
					tokens = append(tokens, token)
					for _, m := range u.demo.Venue.Markets() {
						if m.TokenIDs[0] == token && ok {
							texts = append(texts, m.Description)
						}
					}
				}
				if len(texts) != 2 || tokens[0] != tokens[1] {
					t.Fatalf("%s: %s has the tokens %v, with %d texts", drivers, q.ID, tokens, len(texts))
				}
				if got := questions.RulesHash(texts[1]) != q.Legs[1].RulesSHA256; questions.RulesHash(texts[0]) != q.Legs[0].RulesSHA256 || got != changed[i] || (texts[0] == texts[1]) != equal[i] {
					t.Errorf("%s, %s: the rules of %s are %q", drivers, step, q.ID, texts)
				}
			}
		}
		check("start", []bool{false, false, false}, []bool{true, false, true})
		if wanted > 0 {
			if err := s.Venues[1].demo.newRules(); err != nil {
				t.Fatal(err)
			}
			check("later", []bool{false, false, true}, []bool{true, false, false})
			if want := []questions.Match{questions.Exact, questions.Near, questions.Exact}; !slices.Equal(matches[:3], want) {
				t.Errorf("%s: got the matches %v, want %v", drivers, matches[:3], want)
			}
		}
	}
}

// TestAcceptKeepsEdits checks that --accept does not overwrite what was saved while the command has read the venues.
func TestAcceptKeepsEdits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "questions.json")
	if err := os.WriteFile(path, []byte(`{"edited": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	err := accept(path, []byte(`{}`), 0, &questions.Question{}, nil, io.Discard)
	if got, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "has changed meanwhile") || string(got) != `{"edited": true}` {
		t.Errorf("got the error %v and the file %s", err, got)
	}
}
