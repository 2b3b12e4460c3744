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

const maxQuestionsFile = 8 << 20 // bytes

// questionsFile is the file of questions on several venues.
type questionsFile struct {
	*filewatch.File
	shown *resolvers.QuestionFile
}

// openQuestions opens the file for the service.
func openQuestions(cfg *config.Config, log *slog.Logger) (*questionsFile, error) {
	shown := &resolvers.QuestionFile{}
	file, err := watchQuestions(cfg, log, func(_ []byte, set *questions.Set) { shown.Replace(set) })
	return &questionsFile{file, shown}, err
}

// watchQuestions opens the file. It calls use with each valid content.
func watchQuestions(cfg *config.Config, log *slog.Logger, use func([]byte, *questions.Set)) (*filewatch.File, error) {
	form := pairs.File{AnyID: cfg.Venue.Driver == drivers.Generic, Venues: furtherNames(cfg)}
	return filewatch.Open(filewatch.Options{
		What: "questions file", Path: cfg.QuestionsFile, MaxSize: maxQuestionsFile, Log: log,
		Use: func(content []byte) error {
			set, err := form.Parse(content)
			if err == nil {
				use(content, set)
			}
			return err
		},
	})
}

// questions returns the questions of the file, or without a file those of the embedded venues.
func (s *App) questions() (*resolvers.QuestionFile, error) {
	if s.Files.Questions != nil {
		return s.Files.Questions.shown, nil
	}
	shown := &resolvers.QuestionFile{}
	all, err := demoQuestions(s.units())
	shown.Replace(questions.NewSet(all...))
	return shown, err
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
