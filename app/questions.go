package app

import (
	"cmp"
	"errors"
	"log/slog"

	"oddsgraph/app/pairs"
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
	shown := &resolvers.QuestionFile{}
	file, err := filewatch.Open(filewatch.Options{
		What: "questions file", Path: cfg.QuestionsFile, MaxSize: pairs.MaxFile, Log: log,
		Use: func(content []byte) error {
			set, err := questionFile(cfg).Parse(content)
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

// questionFile returns the form of the file over the configured venues.
func questionFile(cfg *config.Config) pairs.File {
	return pairs.File{Venues: names(cfg), AnyID: cfg.Venue.Driver == drivers.Generic}
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
	if err := f.fault(); err != nil {
		s.Error = new(cmp.Or(errors.Unwrap(err), err).Error())
	}
	return s
}
