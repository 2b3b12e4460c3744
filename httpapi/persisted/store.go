package persisted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/market"
)

// Mode says what trusted documents are for.
type Mode string

// The modes.
const (
	// ModeOff has no trusted documents.
	ModeOff Mode = "off"
	// ModeAllow executes trusted documents and any others.
	ModeAllow Mode = "allow"
	// ModeRequire executes trusted documents only.
	ModeRequire Mode = "require"
)

// CodeNotSupported tells a client that persisted documents are switched off. Apollo's clients know it, and send texts
// from then on.
const CodeNotSupported market.Code = "PERSISTED_QUERY_NOT_SUPPORTED"

// errNotSupported has Apollo's text, which clients look for too.
var errNotSupported = market.Errorf(CodeNotSupported, "PersistedQueryNotSupported")

// Config says which documents are kept.
type Config struct {
	// AutomaticBytes bounds what clients register themselves, everything counted; 0 switches that off. In ModeRequire
	// nothing is registered.
	AutomaticBytes int
	Mode           Mode
	// Manifest is the path of the manifest; required unless the mode is ModeOff.
	Manifest string
	// Validate parses a text and validates it against the schema. It is called for every document of the manifest, again
	// whenever that changes. Its errors may be shown to operators.
	Validate func(text string) error
	Log      *slog.Logger
}

// Store knows documents. It is safe for concurrent use.
type Store struct {
	mode      Mode
	automatic *registry       // nil when off
	file      *filewatch.File // nil in ModeOff
	manifest  atomic.Pointer[manifest]
}

// Status tells how a Store stands.
type Status struct {
	// Status is that of the manifest; zero in ModeOff.
	filewatch.Status
	// Trusted is the number of trusted documents.
	Trusted int
}

// Open reads the manifest, if there is one. A document in it that does not pass is an error with its id.
func Open(cfg Config) (*Store, error) {
	s := &Store{mode: cfg.Mode}
	if cfg.AutomaticBytes > 0 {
		s.automatic = newRegistry(cfg.AutomaticBytes)
	}
	switch {
	case cfg.Mode == ModeOff && cfg.Manifest != "":
		return nil, errors.New("there is a manifest of trusted documents, but they are off")
	case cfg.Mode == ModeOff:
		return s, nil
	case cfg.Mode != ModeAllow && cfg.Mode != ModeRequire:
		return nil, fmt.Errorf("the mode of trusted documents is off, allow or require, not %q", cfg.Mode)
	case cfg.Manifest == "":
		return nil, errors.New("trusted documents need a manifest")
	}
	var err error
	s.file, err = filewatch.Open(filewatch.Options{
		What: "manifest", Path: cfg.Manifest, MaxSize: maxManifest, Log: cfg.Log,
		Use: func(content []byte) error {
			m, err := parseManifest(content, cfg.Validate)
			if err != nil {
				return err
			}
			s.manifest.Store(m)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Run looks at the manifest twice a second until ctx ends. One that is broken or missing leaves the documents as they
// are. Without a manifest it returns at once.
func (s *Store) Run(ctx context.Context) {
	if s.file != nil {
		s.file.Run(ctx)
	}
}

// Reload reads the manifest now. After an error the documents are as they were.
func (s *Store) Reload() error {
	if s.file == nil {
		return nil
	}
	return s.file.Reload()
}

// Status tells whether the manifest's present content is in force.
func (s *Store) Status() Status {
	if s.file == nil {
		return Status{}
	}
	return Status{Status: s.file.Status(), Trusted: len(s.manifest.Load().byHash)}
}

// Request is the part of a client's request that says which document it means.
type Request struct {
	// Query is the text; empty when none was sent.
	Query string
	// DocumentID is the documentId of the body or the URL; empty when none was sent.
	DocumentID string
	// Extensions are a JSON object, or nil.
	Extensions json.RawMessage
}

// Document is what is to be executed.
type Document struct {
	Text string
	// Trusted tells that the text is in the manifest, so that it is known to be valid.
	Trusted bool
	// Name is that of a trusted document in metrics, else empty. There are as many as the manifest has documents.
	Name string

	registry *registry // nil when there is nothing to register
	hash     hash
}

// Register keeps the document under its hash if the client asked for that. It is to be called once the document has been
// found valid, so that what isn't takes no room.
func (d Document) Register() {
	if d.registry != nil {
		d.registry.add(d.hash, d.Text)
	}
}

// Resolve finds the document that a request means. Its errors are market.Errors: CodePersistedNotFound for an id that is
// not known, CodeNotSupported for one while neither kind of document is kept, CodeForbidden for a text that is not
// trusted where that is required, and CodeBadUserInput for a request that contradicts itself.
func (s *Store) Resolve(r Request) (Document, error) {
	i, err := s.identify(r)
	if err != nil {
		return Document{}, err
	}
	switch {
	case i.given() && s.mode == ModeOff && s.automatic == nil:
		return Document{}, errNotSupported
	case i.given() && s.mode == ModeOff && !i.hashed:
		return Document{}, market.Errorf(market.CodeBadUserInput, "documents are known by their hash here: %s and 64 hex digits", hashPrefix)
	case r.Query == "" && !i.given():
		return Document{}, market.Errorf(market.CodeBadUserInput, "send the text of a document, or the id of one that is known")
	case r.Query == "":
		return s.byID(i)
	}
	return s.byText(r.Query, i)
}

// Name returns the name of a trusted document in metrics by any of its ids, or "".
func (s *Store) Name(documentID string) string {
	if m := s.manifest.Load(); m != nil {
		if i, err := parseID(documentID); err == nil {
			if t := m.find(i); t != nil {
				return t.name
			}
		}
	}
	return ""
}

// identify returns the id that a request has in either place.
func (s *Store) identify(r Request) (i id, err error) {
	if r.DocumentID != "" {
		if i, err = parseID(r.DocumentID); err != nil {
			return id{}, err
		}
	}
	e, err := parseExtension(r.Extensions)
	switch {
	case err != nil:
		return id{}, err
	case i.given() && e.given() && i != e:
		return id{}, market.Errorf(market.CodeBadUserInput, "documentId and extensions.persistedQuery name different documents")
	case e.given():
		return e, nil
	}
	return i, nil
}

func (s *Store) byID(i id) (Document, error) {
	if m := s.manifest.Load(); m != nil {
		if t := m.find(i); t != nil {
			return Document{Text: t.text, Trusted: true, Name: t.name}, nil
		}
	}
	if s.mode == ModeRequire {
		// Not Apollo's text: clients that take it for an invitation to send theirs would be refused again.
		return Document{}, market.Errorf(market.CodePersistedNotFound, "no trusted document has this id; the manifest of this service is that of another build of the client")
	}
	if s.automatic != nil && i.hashed {
		if text, ok := s.automatic.get(i.hash); ok {
			return Document{Text: text}, nil
		}
	}
	return Document{}, market.Errorf(market.CodePersistedNotFound, "PersistedQueryNotFound")
}

// byText finds out whether a text is trusted, and whether it is what i, if given, names.
func (s *Store) byText(text string, i id) (Document, error) {
	m := s.manifest.Load()
	if m == nil && !i.given() {
		return Document{Text: text}, nil
	}
	h := hashOf(text)
	if i.hashed && i.hash != h {
		return Document{}, market.Errorf(market.CodeBadUserInput, "provided sha does not match query")
	}
	if m != nil {
		if t := m.find(i); t != nil && t.hash != h {
			return Document{}, market.Errorf(market.CodeBadUserInput, "the id is that of a document other than query")
		}
		if t := m.byHash[h]; t != nil {
			return Document{Text: t.text, Trusted: true, Name: t.name}, nil
		}
	}
	if s.mode == ModeRequire {
		return Document{}, market.Errorf(market.CodeForbidden, "this document is not trusted: this service executes only those of its manifest")
	}
	d := Document{Text: text}
	if i.hashed {
		d.registry, d.hash = s.automatic, h
	}
	return d, nil
}
