package persisted

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/filewatch"
	"oddsgraph/internal/market"
)

// Mode says which documents may be executed.
type Mode string

const (
	// ModeOff uses no trusted documents.
	ModeOff Mode = "off"
	// ModeAllow executes trusted and all other documents.
	ModeAllow Mode = "allow"
	// ModeRequire executes only trusted documents.
	ModeRequire Mode = "require"
)

// CodeNotSupported tells a client that persisted documents are disabled. Apollo's clients then send the text of each document.
const CodeNotSupported market.Code = "PERSISTED_QUERY_NOT_SUPPORTED"

// errNotSupported has the message that Apollo defines, because some clients compare the message.
var errNotSupported = market.Errorf(CodeNotSupported, "PersistedQueryNotSupported")

// Config configures a Store.
type Config struct {
	// AutomaticBytes limits the memory in bytes of the documents that clients register. If it is 0 or Mode is ModeRequire, clients
	// cannot register documents.
	AutomaticBytes int
	Mode           Mode
	// Manifest is the path of the manifest. It must be empty in ModeOff, and is required in the other modes.
	Manifest string
	// Validate parses a text and validates it against the schema. The Store validates the documents of each version of the
	// manifest, and the texts in Pages. If Validate returns an error for a document of the manifest, the Store does not use this
	// version.
	Validate func(text string) (*ast.QueryDocument, error)
	// Pages are the texts that the service's own pages send. These texts are trusted, too. If Validate returns an error for a
	// text, the error is logged, and the text is not trusted.
	Pages []string
	Log   *slog.Logger
}

// Store finds documents. It is safe for concurrent use.
type Store struct {
	mode      Mode
	automatic *registry       // nil if AutomaticBytes is 0
	file      *filewatch.File // nil in ModeOff
	manifest  atomic.Pointer[manifest]
	pages     map[hash]*trustedDocument // documents of the service's own pages
}

// Status is the state of a Store.
type Status struct {
	// Status is the manifest's state. It is zero in ModeOff.
	filewatch.Status
	// Trusted is the number of documents in the manifest.
	Trusted int
}

// Open reads the manifest if Mode needs it. If a document in the manifest is invalid, Open returns an error with the document's
// id.
func Open(cfg Config) (*Store, error) {
	s := &Store{mode: cfg.Mode}
	if cfg.AutomaticBytes > 0 {
		s.automatic = newRegistry(cfg.AutomaticBytes)
	}
	switch {
	case cfg.Mode == ModeOff && cfg.Manifest != "":
		return nil, errors.New("there is a manifest, but trusted documents are off")
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
	s.trustPages(cfg)
	return s, nil
}

// trustPages stores the valid documents of the service's own pages.
func (s *Store) trustPages(cfg Config) {
	s.pages = make(map[hash]*trustedDocument, len(cfg.Pages))
	for _, text := range cfg.Pages {
		h := hashOf(text)
		doc, err := cfg.Validate(text)
		var name string
		if err == nil {
			name, err = operationName(operation{id: hashPrefix + hex.EncodeToString(h[:]), text: text}, doc)
		}
		if err != nil {
			cfg.Log.Warn("a document of the service's own pages is not valid here, so it is not trusted", "err", err)
			continue
		}
		s.pages[h] = &trustedDocument{text: text, name: name, hash: h}
	}
}

// find returns the trusted document with an id. It returns nil if there is none.
func (s *Store) find(i id) *trustedDocument {
	m := s.manifest.Load()
	if m == nil {
		return nil
	}
	if t := m.find(i); t != nil || !i.hashed {
		return t
	}
	return s.pages[i.hash]
}

// Run polls the manifest every second until ctx ends. While the manifest is invalid or missing, the Store keeps the documents of
// the last valid version. In ModeOff, Run returns at once.
func (s *Store) Run(ctx context.Context) {
	if s.file != nil {
		s.file.Run(ctx)
	}
}

// Reload reads the manifest now. If Reload returns an error, the documents are unchanged. In ModeOff, Reload does nothing.
func (s *Store) Reload() error {
	if s.file == nil {
		return nil
	}
	return s.file.Reload()
}

// Status returns the state of the manifest.
func (s *Store) Status() Status {
	if s.file == nil {
		return Status{}
	}
	return Status{Status: s.file.Status(), Trusted: len(s.manifest.Load().byHash)}
}

// Request is the part of a client's request that identifies the document.
type Request struct {
	// Query is the text of the document. It is empty if the client sent none.
	Query string
	// DocumentID is the documentId of the body or the URL. It is empty if the client sent none.
	DocumentID string
	// Extensions is a JSON object, or nil.
	Extensions json.RawMessage
}

// Document is a document to execute.
type Document struct {
	Text string
	// Name is the name of a trusted document in metrics. It is empty for other documents. A document is trusted if its text is in
	// the manifest or in Config.Pages. A trusted text is valid. Clients cannot add names, because only operators can add trusted
	// documents.
	Name string
	// Literal is true if the request names the document by its text alone, so that it stands for the same document forever.
	Literal bool

	registry *registry // nil if Register must not store the document
	hash     hash
}

// Register stores the document under its hash if the client requested that. Call it only for a valid document, because an invalid
// document would waste memory.
func (d Document) Register() {
	if d.registry != nil {
		d.registry.add(d.hash, d.Text)
	}
}

// Resolve finds the document of a request. Its errors are market.Errors with these codes:
//
//   - CodePersistedNotFound: the request has only an id, and the id is unknown.
//   - CodeNotSupported: the request has an id, but persisted documents are disabled.
//   - CodeForbidden: the text is not trusted in ModeRequire.
//   - CodeBadUserInput: the request has no document, an invalid id or parts that contradict each other.
func (s *Store) Resolve(r Request) (Document, error) {
	i, err := s.identify(r)
	if err != nil {
		return Document{}, err
	}
	switch {
	case i.isSet() && s.mode == ModeOff && s.automatic == nil:
		return Document{}, errNotSupported
	case i.isSet() && s.mode == ModeOff && !i.hashed:
		return Document{}, market.Errorf(market.CodeBadUserInput, "a document id must be a hash here: %s and 64 hex digits", hashPrefix)
	case r.Query == "" && !i.isSet():
		return Document{}, market.Errorf(market.CodeBadUserInput, "send the text of a document, or the id of a known document")
	case r.Query == "":
		return s.byID(i)
	}
	d, err := s.byText(r.Query, i)
	d.Literal = err == nil && !i.isSet() && s.mode != ModeRequire
	return d, err
}

// identify returns the id in a request's documentId or extensions. If the request has no id, it returns the zero id.
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
	case i.isSet() && e.isSet() && i != e:
		return id{}, market.Errorf(market.CodeBadUserInput, "documentId and extensions.persistedQuery name different documents")
	case e.isSet():
		return e, nil
	}
	return i, nil
}

func (s *Store) byID(i id) (Document, error) {
	if t := s.find(i); t != nil {
		return Document{Text: t.text, Name: t.name}, nil
	}
	if s.mode == ModeRequire {
		// PersistedQueryNotFound would make clients send the text of the document, which the service would also refuse.
		return Document{}, market.Errorf(market.CodePersistedNotFound, "no trusted document has this id; the service's manifest may be from another build of the client")
	}
	if s.automatic != nil && i.hashed {
		if text, ok := s.automatic.get(i.hash); ok {
			return Document{Text: text}, nil
		}
	}
	return Document{}, market.Errorf(market.CodePersistedNotFound, "PersistedQueryNotFound")
}

// byText resolves a text. If the request also has the id i, byText checks that i belongs to the text. It ignores an unknown id
// that is not a hash.
func (s *Store) byText(text string, i id) (Document, error) {
	m := s.manifest.Load()
	if m == nil && !i.isSet() {
		return Document{Text: text}, nil
	}
	h := hashOf(text)
	if i.hashed && i.hash != h {
		return Document{}, market.Errorf(market.CodeBadUserInput, "provided sha does not match query")
	}
	if m != nil {
		if t := m.find(i); t != nil && t.hash != h {
			return Document{}, market.Errorf(market.CodeBadUserInput, "the id belongs to another document than query")
		}
		if t := s.find(id{hash: h, hashed: true}); t != nil {
			return Document{Text: t.text, Name: t.name}, nil
		}
	}
	if s.mode == ModeRequire {
		return Document{}, market.Errorf(market.CodeForbidden, "this document is not trusted: this service executes only the documents of its manifest")
	}
	d := Document{Text: text}
	if i.hashed {
		d.registry, d.hash = s.automatic, h
	}
	return d, nil
}
