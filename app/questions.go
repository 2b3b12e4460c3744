package app

import (
	"cmp"
	"errors"
	"log/slog"
	"slices"
	"time"

	"oddsgraph/app/pairs"
	"oddsgraph/graph/model"
	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/config"
	"oddsgraph/internal/demo"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/questions"
	"oddsgraph/resolvers"
)

const (
	maxQuestionsFile = 8 << 20 // bytes
	// rulesChange is the time after which the second venue changes the rules of a demo question.
	rulesChange = time.Minute
)

// questionsFile is the file of questions on several venues.
type questionsFile struct {
	*filewatch.File
	shown *resolvers.QuestionFile
}

func openQuestions(cfg *config.Config, log *slog.Logger) (*questionsFile, error) {
	shown := &resolvers.QuestionFile{}
	file, err := filewatch.Open(filewatch.Options{
		What: "questions file", Path: cfg.QuestionsFile, MaxSize: maxQuestionsFile, Log: log,
		Use: func(content []byte) error {
			set, err := pairs.Parse(content, names(cfg))
			if err == nil {
				shown.Replace(set)
			}
			return err
		},
	})
	return &questionsFile{file, shown}, err
}

// questions returns the questions of the file, or without a file those of the embedded venues.
func (s *App) questions() (*resolvers.QuestionFile, error) {
	if s.Files.Questions != nil {
		return s.Files.Questions.shown, nil
	}
	shown := &resolvers.QuestionFile{}
	all, err := demoQuestions(s.Venues)
	shown.Replace(questions.NewSet(all...))
	return shown, err
}

// status returns the value of serviceStatus.questions. Clients see the error without the path of the file.
func (f *questionsFile) status() *model.QuestionsStatus {
	if f == nil {
		return nil
	}
	s := &model.QuestionsStatus{Count: f.shown.Len(), LoadedAt: f.Status().Since}
	if err := f.Status().Err; err != nil {
		s.Error = new(cmp.Or(errors.Unwrap(err), err).Error())
	}
	return s
}

// takerFeeRates are the rates that simulated venues document.
var takerFeeRates = map[string]*market.Decimal{"kalshi": new(market.NewDecimal(7, -2)), "polymarket": new(market.NewDecimal(0, 0))}

// demoQuestions returns three questions on the first two venues, if both are embedded: an EXACT one, a NEAR one, for which the second
// venue gets other rules, and an EXACT one whose rules the second venue changes later. Otherwise it returns none.
func demoQuestions(units []*unit) ([]questions.Question, error) {
	if len(units) < 2 || units[0].demo == nil || units[1].demo == nil {
		return nil, nil
	}
	positions := units[0].demo.Venue.Positions(demo.Accounts()[0].Address) // no automatic change concerns their markets
	markets := slices.DeleteFunc(units[0].demo.Venue.Markets(), func(m demo.Market) bool {
		return !slices.ContainsFunc(positions, func(p demo.Position) bool { return p.MarketID == m.MarketID })
	})
	if len(markets) < 3 {
		return nil, nil
	}
	var all []questions.Question
	for i, id := range []string{"demo-exact", "demo-near", "demo-new-rules"} {
		m := markets[i]
		q := questions.Question{ID: id, Title: m.Question, Match: questions.Exact, CheckedAt: market.DateOf(units[0].started), CheckedBy: "the demo"}
		for _, u := range units[:2] {
			q.Legs = append(q.Legs, questions.Leg{
				Token:       market.Qualify(u.name, u.demo.engine.ID(m.TokenIDs[0])),
				RulesSHA256: questions.RulesHash(m.Description), TakerFeeRate: takerFeeRates[u.cfg.Demo.Driver],
			})
		}
		all = append(all, q)
	}
	second, near, changing := units[1].demo, markets[1], markets[2]
	text := near.Description + " If nothing is published within 7 days after that, the market resolves to NO."
	all[1].Match, all[1].Legs[1].RulesSHA256 = questions.Near, questions.RulesHash(text)
	all[1].Differences = []string{title(units[1].cfg) + " resolves to NO if nothing is published within 7 days after the end; " + title(units[0].cfg) + " waits"}
	second.newRules = func() error {
		return second.Venue.Reword(changing.MarketID, changing.Description+" Clarified: what is published after the end of trading does not count.")
	}
	return all, second.Venue.Reword(near.MarketID, text)
}
