package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"oddsgraph/httpapi/content"
	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/request"
)

// newResponses returns the response cache, or nil if it is disabled.
func newResponses(cfg Config, who *identities) *respcache.Cache {
	if cfg.ResponseBytes == 0 {
		return nil
	}
	return respcache.New(respcache.Config{Bytes: cfg.ResponseBytes, Clock: cfg.Clock, Encode: func(body []byte, coding string) []byte {
		buf := getBuffer()
		defer putBuffer(buf)
		content.Compress(buf, body, coding)
		return bytes.Clone(buf.Bytes())
	}, Reading: func(ctx context.Context) context.Context { return who.reading(ctx, nil) }})
}

// cacheable reports whether the response of an operation may be cached. A response with serviceStatus or recentPrices must not be
// cached, because the cache does not learn when these fields change.
func (e *engine) cacheable(op *operation) bool {
	return e.responses != nil && op.kind() == ast.Query && !op.plan.policy.noStore
}

type responseMeta struct {
	status int
	media  string
	policy policy
	// info, trusted and points are for the log of the operation.
	info          *request.OperationInfo
	trusted       string
	points        int64
	contentType   []string
	contentLength [1]string
	errors        *graphql.Response // nil if the response has no errors

	once sync.Once
	tag  string
}

func metaOf(r *respcache.Response) *responseMeta {
	meta, _ := r.Note.(*responseMeta)
	return meta
}

// tagOf returns the entity tag of a response. The first call computes it.
func (m *responseMeta) tagOf(body []byte) string {
	m.once.Do(func() { m.tag = entityTag(m.media, body) })
	return m.tag
}

// cachedOrExecuted returns the response to a cacheable operation. The response comes from the cache, from an equal operation that
// is running, or from an execution. log.Response says which of the three it is.
func (e *engine) cachedOrExecuted(ctx context.Context, log *request.Log, op *operation, media string) (*respcache.Response, error) {
	r, outcome, err := e.responses.Do(ctx, e.key(ctx, op, media), &op.slot, func(ctx context.Context) *respcache.Response {
		return e.executeForCache(ctx, log, op, media)
	})
	log.Response = verdicts[outcome]
	if err == nil && outcome != respcache.Executed {
		e.countCachedRefusal(ctx, r)
	}
	return r, err
}

// executeForCache executes an operation and returns its response, or nil if ctx ended before the first fetch. The execution may
// last longer than the request that started it. So the execution has its own reservation and does not change op.
func (e *engine) executeForCache(ctx context.Context, log *request.Log, op *operation, media string) *respcache.Response {
	run := &operation{plan: op.plan, variables: op.variables, memory: e.newReservation(e.identities.countedIn(ctx), log.Transport), buffer: getBuffer()}
	defer putBuffer(run.buffer)
	defer run.memory.settle(0) // the code that sends the response makes its own reservation
	resp := e.executeInTime(ctx, run, &op.slot)
	if resp == nil {
		return nil
	}
	var body []byte
	if run.ready {
		body = bytes.Clone(run.buffer.Bytes())
	} else {
		body = appendResponse(nil, resp) // the execution panicked, so the buffer has no complete response
	}
	meta := &responseMeta{
		status: statusOf(resp), media: media, policy: op.plan.policy,
		contentType: contentType(media), contentLength: [1]string{strconv.Itoa(len(body))},
		info: log.Info, trusted: log.Trusted, points: log.Points,
	}
	if len(resp.Errors) > 0 {
		meta.errors = &graphql.Response{Errors: resp.Errors}
		if !cacheableErrors(resp.Errors) {
			run.recorder = nil
		}
	}
	cached := respcache.NewResponse(body, meta, run.recorder, op.plan.policy.dated)
	cached.NoteBytes = errorBytes(resp.Errors, op.document)
	return cached
}

// maxCachedErrors bounds the number of errors of a cached response, because errors need memory in addition to the body.
const maxCachedErrors = 8

// cacheableErrors reports whether the errors of a response may be cached. There must be at most maxCachedErrors errors, and they
// must depend only on the request.
func cacheableErrors(errs gqlerror.List) bool {
	return len(errs) <= maxCachedErrors && !slices.ContainsFunc(errs, func(err *gqlerror.Error) bool {
		return codeOf(err) != string(market.CodeBadUserInput)
	})
}

// errorBytes estimates the size of a response's errors in bytes, without the body of the response.
func errorBytes(errs gqlerror.List, doc *document) (size int) {
	for _, err := range errs {
		size += bytesPerCachedError + len(err.Message) + bytesPerValue*len(err.Path)
		if err.Err != nil { // err.Err keeps the document in memory
			size += sizeOf(doc)
		}
	}
	return size
}

// bytesPerCachedError is the size in bytes of an error without its text and path.
const bytesPerCachedError = 1 << 10

// key returns the key of an operation in the response cache: the operation, the media type and the client's credentials.
func (e *engine) key(ctx context.Context, op *operation, media string) respcache.Key {
	return respcache.Key{
		Operation: respcache.OperationHash(op.document.hash, op.definition.Name, op.canonicalVariables(), media),
		Identity:  e.responses.Identity(identityFrom(ctx).credentials),
	}
}

var verdicts = [...]string{respcache.Executed: verdictMiss, respcache.Hit: verdictHit, respcache.Shared: verdictShared}

// countCachedRefusal is countRefusal for a cached response.
func (e *engine) countCachedRefusal(ctx context.Context, r *respcache.Response) {
	if refused := metaOf(r).errors; refused != nil {
		e.identities.countRefusal(ctx, refused)
	}
}

// wantsCost reports whether a request asks for the cost of its operation. Such a request is always executed.
func wantsCost(r *httpRequest) bool { return r.header(CostHeader) != "" }

// form returns the method of a request and the media type of its response as one text, where HEAD counts as GET. Requests of one
// client with equal forms and equal bytes have equal responses.
func form(method, media string) string {
	switch posted := method == http.MethodPost; {
	case posted && media == content.JSON:
		return "POST " + content.JSON
	case posted:
		return "POST " + content.Response
	case media == content.JSON:
		return "GET " + content.JSON
	default:
		return "GET " + content.Response
	}
}

// cacheableByBytes reports whether findByBytes and storeByBytes may be used for a request.
func (e *engine) cacheableByBytes(r *httpRequest, log *request.Log) bool {
	return e.responses != nil && r.PathValue("documentId") == "" && !log.Explained && !wantsCost(r)
}

// findByBytes returns the cached response to an earlier request with the same bytes, or nil.
func (e *engine) findByBytes(r *httpRequest, log *request.Log, text []byte) *respcache.Response {
	if !e.cacheableByBytes(r, log) {
		return nil
	}
	cached := e.responses.FindRequest(r.Context(), e.responses.Identity(r.credentials), form(r.Method, r.Media), text)
	if cached != nil {
		meta := metaOf(cached)
		log.Response, log.Info, log.Trusted, log.Points = verdictHit, meta.info, meta.trusted, meta.points
		e.countCachedRefusal(r.Context(), cached)
	}
	return cached
}

// storeByBytes stores a response under the bytes of its request. If the request names its document by an id, each hit resolves the
// document again, because the id may now be unknown, or may now stand for another text.
func (e *engine) storeByBytes(r *httpRequest, log *request.Log, text []byte, p *params, op *operation, cached *respcache.Response) {
	if !e.cacheableByBytes(r, log) {
		return
	}
	var current func() bool
	if !op.literal {
		request, meant := persisted.Request{Query: p.Query, DocumentID: p.DocumentID, Extensions: p.Extensions}, op.document.text
		current = func() bool {
			named, err := e.cfg.Documents.Resolve(request)
			if err != nil || named.Text != meant {
				return false
			}
			named.Register()
			return true
		}
	}
	e.responses.StoreRequest(cached, form(r.Method, r.Media), text, current)
}
