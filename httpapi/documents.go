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
	"oddsgraph/httpapi/limits"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/httpapi/validation"
	"oddsgraph/internal/request"
	"oddsgraph/resolvers"
)

// MaxDocumentBytes is the maximum size in bytes of all cached documents. MaxSubscribedBytes is the maximum size in bytes of the
// documents and variables of all operations on WebSockets and event streams.
const (
	MaxDocumentBytes   = 36 << 20
	MaxSubscribedBytes = 16 << 20
)

const (
	maxDocuments = 1000          // cached documents
	maxErrors    = 50            // different errors of one document
	maxFound     = 2 * maxErrors // errors of one document, with repetitions; each spread of a fragment repeats the errors of the fragment
)

// document is a GraphQL document with the result of parsing and validating its text. Requests with the same text share a document.
// Only the fields size and uses change after the document was loaded.
type document struct {
	text string
	hash [sha256.Size]byte
	// ast is nil if errs is not empty.
	ast   *ast.QueryDocument
	errs  []error
	plans map[*ast.OperationDefinition]*plan
	// size is the estimated size of the document in bytes. uses is the number of operations on WebSockets and event streams that
	// use the document. documentCache.mu guards size and uses.
	size, uses int
}

// plan is the compiled form of an operation, without variables.
type plan struct {
	info   *request.OperationInfo
	cost   *limits.Plan
	policy policy
	// If the operation is a subscription that can be executed separately for each id, list is the name of the variable with the ids.
	// Otherwise list is "".
	list       string
	executable *exec.Operation
}

// documentCache caches valid and invalid documents.
type documentCache struct {
	schema   *ast.Schema
	rules    []core.Rule
	guard    *limits.Guard
	compiler *exec.Compiler

	// mu guards the fields below. shrink is called with it held.
	mu    sync.Mutex
	cache *simplelru.LRU[string, *document]
	// doorkeeper remembers recently loaded documents. Only a remembered or a trusted document may evict other documents.
	doorkeeper respcache.Doorkeeper
	bytes      int // size of all documents in cache
	// used contains the documents whose uses are not 0, by text. Some of them may no longer be in cache.
	used map[string]*document
}

func newDocumentCache(cfg Config) *documentCache {
	d := &documentCache{
		schema: cfg.Compiler.Schema(), rules: validation.Rules(cfg.Introspection, cfg.Suggestions), guard: cfg.Guard, compiler: cfg.Compiler,
		used: make(map[string]*document),
	}
	cache, err := simplelru.NewLRU(maxDocuments, func(_ string, doc *document) { d.bytes -= doc.size })
	if err != nil {
		panic("httpapi: " + err.Error()) // the size is a constant
	}
	d.cache = cache
	return d
}

// find returns the document with a text. It returns nil if the document is neither in cache nor in used.
func (d *documentCache) find(text string) *document {
	d.mu.Lock()
	defer d.mu.Unlock()
	if doc, kept := d.cache.Get(text); kept {
		return doc
	}
	return d.used[text]
}

// use increments doc.uses, and the returned function done decrements doc.uses. size is the size of the document in bytes.
func (d *documentCache) use(doc *document) (size int, done func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc.uses++
	if d.used[doc.text] == nil {
		d.used[doc.text] = doc
	}
	return doc.size, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if doc.uses--; doc.uses == 0 && d.used[doc.text] == doc {
			delete(d.used, doc.text)
		}
	}
}

// load returns the document with a text, and compiles the document if it is unknown. A full cache stores a new document only if the
// document is trusted, or if the doorkeeper remembers an earlier load of the document.
func (d *documentCache) load(text string, trusted bool) *document {
	if doc := d.find(text); doc != nil {
		return doc
	}
	doc := &document{text: text, hash: sha256.Sum256([]byte(text))}
	if doc.ast, doc.errs = d.parse(text); doc.ast != nil {
		doc.plans = make(map[*ast.OperationDefinition]*plan, len(doc.ast.Operations))
		for _, op := range doc.ast.Operations {
			p := &plan{info: operationInfo(doc, op), cost: d.guard.Compile(doc.ast, op), policy: policyOf(op), list: listVariable(doc.ast, op)}
			p.executable = d.compiler.Operation(doc.ast, op, func(bytes int) { d.grow(doc, bytes) })
			doc.plans[op] = p
		}
	}
	doc.size = sizeOf(doc)
	d.store(doc, trusted)
	return doc
}

func (d *documentCache) store(doc *document, trusted bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.doorkeeper.Again(binary.LittleEndian.Uint64(doc.hash[:]))
	full := d.cache.Len() == maxDocuments || d.bytes+doc.size > MaxDocumentBytes
	if d.cache.Contains(doc.text) || full && !again && !trusted {
		return
	}
	d.cache.Add(doc.text, doc)
	d.bytes += doc.size
	d.shrink()
}

func (d *documentCache) grow(doc *document, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc.size += bytes
	if cached, _ := d.cache.Peek(doc.text); cached == doc {
		d.bytes += bytes
		d.shrink()
	}
}

// shrink evicts the least recently used documents until the cache has at most MaxDocumentBytes.
func (d *documentCache) shrink() {
	for d.bytes > MaxDocumentBytes {
		d.cache.RemoveOldest()
	}
}

func (d *documentCache) parse(text string) (*ast.QueryDocument, []error) {
	doc, err := d.guard.Document(text)
	if err != nil {
		return nil, []error{err}
	}
	if errs := d.validate(doc); len(errs) > 0 {
		return nil, errs
	}
	return doc, nil
}

// tooManyErrors is the panic that ends a validation.
type tooManyErrors struct{}

// validate returns the errors of a document without repetitions. It stops after maxErrors different errors, or after maxFound
// errors in total. These limits bound the time in which gqlparser looks for similar names to suggest in its errors. If validate
// stops early, the last error says that there are more errors.
func (d *documentCache) validate(doc *ast.QueryDocument) (errs []error) {
	seen := map[string]bool{} // each spread of a fragment repeats the fragment's errors
	found := 0
	events := &core.Events{}
	for _, rule := range d.rules {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			if found++; len(errs) == maxErrors || found > maxFound {
				panic(tooManyErrors{}) // only a panic ends core.Walk early
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
		case tooManyErrors{}:
			errs = append(errs, gqlerror.Errorf("there are more errors"))
		default:
			panic(v)
		}
		errs = validationErrors(errs...)
	}()
	core.Walk(d.schema, doc, events)
	return errs
}

// Validator returns a function that parses and validates a document. The function returns the document, or its errors.
func Validator(cfg Config) func(text string) (*ast.QueryDocument, error) {
	d := newDocumentCache(cfg)
	return func(text string) (*ast.QueryDocument, error) {
		doc, errs := d.parse(text)
		return doc, errors.Join(errs...)
	}
}

// validationErrors sets the code of the gqlerror.Errors among errs to errcode.ValidationFailed and returns errs.
func validationErrors(errs ...error) []error {
	for _, err := range errs {
		if located, ok := errors.AsType[*gqlerror.Error](err); ok {
			errcode.Set(located, errcode.ValidationFailed)
		}
	}
	return errs
}
