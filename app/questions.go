package app

import (
	"cmp"
	"errors"
	"log/slog"

	"oddsgraph/graph/model"
	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/config"
	"oddsgraph/internal/market/questions"
	"oddsgraph/internal/venue/drivers"
	"oddsgraph/resolvers"
)

// questionsFile is the file of questions on several venues.
type questionsFile struct {
	*filewatch.File
	shown *resolvers.QuestionFile
}

func openQuestions(cfg *config.Config, log *slog.Logger) (*questionsFile, error) {
	f := &questionsFile{shown: &resolvers.QuestionFile{}}
	venues := questionVenues(cfg)
	file, err := filewatch.Open(filewatch.Options{
		What: "questions file", Path: cfg.QuestionsFile, MaxSize: questions.MaxFile, Log: log,
		Use: func(content []byte) error {
			set, err := questions.Parse(content, venues)
			if err == nil {
				f.shown.Replace(set)
			}
			return err
		},
	})
	f.File = file
	return f, err
}

// questions returns the questions of the file, or without a file those of the embedded venues.
func (s *App) questions() (*resolvers.QuestionFile, error) {
	if s.Files.Questions != nil {
		return s.Files.Questions.shown, nil
	}
	set, err := demoQuestions(s.units())
	if set == nil {
		return nil, err
	}
	f := &resolvers.QuestionFile{}
	f.Replace(set)
	return f, nil
}

// questionVenues returns the venues whose tokens a question may name.
func questionVenues(cfg *config.Config) questions.Venues {
	v := questions.Venues{AnyID: cfg.Venue.Driver == drivers.Generic}
	for _, c := range cfg.More {
		v.Names = append(v.Names, c.Venue.Name)
	}
	return v
}

// fault returns the reason why the present content of the file is not in use, or nil.
func (f *questionsFile) fault() error {
	if f == nil {
		return nil
	}
	return f.Status().Err
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
