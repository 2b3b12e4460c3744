package httpapi

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"

	"oddsgraph/graph/exec"
	"oddsgraph/httpapi/doorkeeper"
	"oddsgraph/httpapi/limits"
	"oddsgraph/internal/market/reqctx"
	"oddsgraph/resolvers"
)

// MaxDocumentBytes is how many bytes the documents that are kept take at most, MaxSubscribedBytes how many those take that
// subscriptions execute, with their variables.
const (
	MaxDocumentBytes   = 40 << 20
	MaxSubscribedBytes = 16 << 20
)

const (
	// maxDocuments bounds the documents that are kept in number.
	maxDocuments = 1000
	// maxErrors bounds the errors of one document, maxFound those that are found at all: the same one may be found at each place that
	// spreads a fragment.
	maxErrors = 50
	maxFound  = 2 * maxErrors
)

// document is the text of a client, parsed and validated once. It is shared and must not be changed.
type document struct {
	text string
	// hash is the SHA-256 of the text.
	hash [sha256.Size]byte
	// ast is nil where errs say why the document is refused.
	ast  *ast.QueryDocument
	errs []error
	// plans are those of the operations.
	plans map[*ast.OperationDefinition]*plan
	// size is an estimate of the document's bytes. uses counts the subscriptions that execute it. The cache's lock guards both.
	size, uses int
}

// plan is what is known of an operation before its variables.
type plan struct {
	asked  *reqctx.OperationInfo
	cost   *limits.Plan
	policy policy
	// simple reads variables that are simple; nil where some can't be.
	simple simpleVariables
	// executable executes the operation.
	executable *exec.Operation
}

// documentCache keeps what was parsed and validated last, refusals too.
type documentCache struct {
	schema   *ast.Schema
	rules    []core.Rule
	guard    *limits.Guard
	compiler *exec.Compiler

	mu    sync.Mutex
	cache *simplelru.LRU[[sha256.Size]byte, *document]
	// wanted decides which documents may displace others.
	wanted doorkeeper.Doorkeeper
	bytes  int
	// used are those that subscriptions execute. Such a document is known even if it is not in the cache.
	used map[[sha256.Size]byte]*document
}

func newDocumentCache(cfg Config) *documentCache {
	d := &documentCache{
		schema: cfg.Compiler.Schema(), rules: validationRules(cfg.Introspection, cfg.Suggestions), guard: cfg.Guard, compiler: cfg.Compiler,
		used: make(map[[sha256.Size]byte]*document),
	}
	cache, err := simplelru.NewLRU(maxDocuments, func(_ [sha256.Size]byte, doc *document) { d.bytes -= doc.size })
	if err != nil {
		panic("httpapi: " + err.Error()) // the size is a constant
	}
	d.cache = cache
	return d
}

// find returns the document with a text if it is known, else nil.
func (d *documentCache) find(text string) *document {
	hash := sha256.Sum256([]byte(text))
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc, kept := d.cache.Get(hash); kept {
		return doc
	}
	return d.used[hash]
}

// use notes that a subscription executes a document, until done is called, and returns the size of the document.
func (d *documentCache) use(doc *document) (size int, done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc.uses++
	if d.used[doc.hash] == nil {
		d.used[doc.hash] = doc
	}
	return doc.size, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if doc.uses--; doc.uses == 0 && d.used[doc.hash] == doc {
			delete(d.used, doc.hash)
		}
	}
}

// load returns the document with a text. When the cache is full, the document displaces others only if it is trusted or was loaded
// lately.
func (d *documentCache) load(text string, trusted bool) *document {
	if doc := d.find(text); doc != nil {
		return doc
	}
	doc := &document{text: text, hash: sha256.Sum256([]byte(text))}
	if doc.ast, doc.errs = d.parse(text); doc.ast != nil {
		doc.plans = make(map[*ast.OperationDefinition]*plan, len(doc.ast.Operations))
		for _, op := range doc.ast.Operations {
			p := &plan{asked: asked(doc, op), cost: d.guard.Compile(doc.ast, op), policy: policyOf(op), simple: newSimpleVariables(d.schema, op)}
			p.executable = d.compiler.Operation(doc.ast, op, func(bytes int) { d.grow(doc, bytes) })
			doc.plans[op] = p
		}
	}
	doc.size = sizeOf(doc)
	d.keep(doc, trusted)
	return doc
}

// keep keeps a document.
func (d *documentCache) keep(doc *document, trusted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.wanted.Again(binary.LittleEndian.Uint64(doc.hash[:]))
	full := d.cache.Len() == maxDocuments || d.bytes+doc.size > MaxDocumentBytes
	if d.cache.Contains(doc.hash) || full && !again && !trusted {
		return
	}
	d.cache.Add(doc.hash, doc)
	d.bytes += doc.size
	d.shrink()
}

// grow counts more bytes of a document.
func (d *documentCache) grow(doc *document, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc.size += bytes
	if cached, _ := d.cache.Peek(doc.hash); cached == doc {
		d.bytes += bytes
		d.shrink()
	}
}

// shrink lets go of what was used longest ago until the documents take as much as they may.
func (d *documentCache) shrink() {
	for d.bytes > MaxDocumentBytes {
		d.cache.RemoveOldest()
	}
}

// parse parses and validates a text.
func (d *documentCache) parse(text string) (*ast.QueryDocument, []error) {
	doc, err := d.guard.Document(text)
	if err != nil {
		return nil, []error{err}
	}
	if errs := d.validate(doc); len(errs) > 0 {
		return nil, errs
	}
	for _, op := range doc.Operations {
		undefer(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		undefer(f.SelectionSet)
	}
	return doc, nil
}

// enough ends a validation that has found enough errors.
type enough struct{}

// validate returns the errors of a document. It stops after so many, since those that suggest names take long to find.
func (d *documentCache) validate(doc *ast.QueryDocument) (errs []error) {
	seen := map[string]bool{} // what is wrong in a fragment is found wherever it is spread
	found := 0
	events := &core.Events{}
	for _, rule := range d.rules {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			if found++; len(errs) == maxErrors || found > maxFound {
				panic(enough{}) // the only way out of the library's walk
			}
			err := &gqlerror.Error{Rule: rule.Name}
			for _, option := range options {
				option(err)
			}
			if err.Message = resolvers.Bounded(err.Message); !seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, err)
			}
		})
	}
	defer func() {
		switch v := recover(); v {
		case nil:
		case enough{}:
			errs = append(errs, gqlerror.Errorf("there are more errors"))
		default:
			panic(v)
		}
		errs = validationErrors(errs...)
	}()
	core.Walk(d.schema, doc, events)
	return errs
}

// Validator returns a function that tells why a document is not executed here, if it isn't.
func Validator(cfg Config) func(text string) error {
	d := newDocumentCache(cfg)
	return func(text string) error {
		_, errs := d.parse(text)
		return errors.Join(errs...)
	}
}

// validationErrors marks errors of the GraphQL library as ones of the document.
func validationErrors(errs ...error) []error {
	for _, err := range errs {
		var located *gqlerror.Error
		if errors.As(err, &located) {
			errcode.Set(located, errcode.ValidationFailed)
		}
	}
	return errs
}

// undefer makes parts that may be deferred come at once, which the specification allows.
func undefer(selection ast.SelectionSet) {
	keep := func(list ast.DirectiveList) ast.DirectiveList {
		kept := list[:0]
		for _, d := range list {
			if d.Name != "defer" {
				kept = append(kept, d)
			}
		}
		return kept
	}
	for _, s := range selection {
		switch s := s.(type) {
		case *ast.Field:
			undefer(s.SelectionSet)
		case *ast.InlineFragment:
			s.Directives = keep(s.Directives)
			undefer(s.SelectionSet)
		case *ast.FragmentSpread:
			s.Directives = keep(s.Directives)
		}
	}
}
