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

	"oddsgraph/httpapi/persisted"
	"oddsgraph/httpapi/respcache"
	"oddsgraph/internal/market"
	"oddsgraph/internal/market/reqctx"
)

// newResponses returns the cache of whole responses, nil where none are kept.
func newResponses(cfg Config) *respcache.Cache {
	if cfg.ResponseBytes == 0 {
		return nil
	}
	return respcache.New(respcache.Config{Bytes: cfg.ResponseBytes, Clock: cfg.Clock, Wait: awaitVenue, Encode: func(body []byte, coding string) []byte {
		buf := getBuffer()
		defer putBuffer(buf)
		compress(buf, body, coding)
		return bytes.Clone(buf.Bytes())
	}})
}

// keeps reports whether the responses of an operation may be kept: not those that tell of the service itself, which changes
// with nothing that is read.
func (e *engine) keeps(op *operation) bool {
	return e.responses != nil && op.kind() == ast.Query && !op.plan.policy.noStore
}

func (e *engine) forget(c *market.Credentials) {
	if e.responses != nil {
		e.responses.Forget(c)
	}
}

// note is what is known of a response beside its bytes.
type note struct {
	status int
	media  string
	policy policy
	// What is noted of the operation.
	asked   *reqctx.OperationInfo
	trusted string
	points  int64
	// The values of headers that are the same whenever the response is sent.
	contentType   []string
	contentLength [1]string
	// refused are its errors, nil without any.
	refused *graphql.Response

	once sync.Once
	tag  string
}

// noteOf returns the note of a response whose bytes NewResponse was given.
func noteOf(r *respcache.Response) *note {
	n, _ := r.Note.(*note)
	return n
}

// tagOf returns the entity tag of a response, which is made when it is first wanted.
func (n *note) tagOf(body []byte) string {
	n.once.Do(func() { n.tag = entityTag(n.media, body) })
	return n.tag
}

// answer returns the response to an operation that keeps has let pass: one that is kept, that of an equal request at the same
// time, or that of an execution. Its note says how it is sent as a media type. The error is why the caller gets none. Which of
// them it was is noted in j.
func (e *engine) answer(ctx context.Context, j *reqctx.Log, op *operation, media string) (*respcache.Response, error) {
	r, outcome, err := e.responses.Do(ctx, e.key(ctx, op, media), func(ctx context.Context) *respcache.Response {
		op.buffer = getBuffer()
		defer putBuffer(op.buffer)
		defer op.room.settle(0) // the sender of the response takes its own room
		resp := e.executeInTime(ctx, op)
		if resp == nil {
			return nil
		}
		var body []byte
		if op.ready {
			body = bytes.Clone(op.buffer.Bytes())
		} else {
			body = appendResponse(nil, resp) // a panic
		}
		n := &note{
			status: op.room.status(statusOf(resp)), media: media, policy: op.plan.policy,
			contentType: contentType(media), contentLength: [1]string{strconv.Itoa(len(body))},
			asked: j.Info, trusted: j.Trusted, points: j.Points,
		}
		if len(resp.Errors) > 0 {
			n.refused = &graphql.Response{Errors: resp.Errors}
			if !lasting(resp.Errors) {
				op.recorder = nil
			}
		}
		kept := respcache.NewResponse(body, n, op.recorder)
		kept.NoteBytes = bytesBeside(resp.Errors, op.document)
		return kept
	})
	j.Response = verdicts[outcome]
	if err == nil && outcome != respcache.Executed {
		e.served(ctx, r)
	}
	return r, err
}

// maxLasting bounds the errors of a response that is kept, since they are kept beside its bytes.
const maxLasting = 8

// lasting reports whether errors are in what the client asks and nothing else, so that they stay as long as the rest of the
// response does.
func lasting(errs gqlerror.List) bool {
	return len(errs) <= maxLasting && !slices.ContainsFunc(errs, func(err *gqlerror.Error) bool {
		return codeOf(err) != string(market.CodeBadUserInput)
	})
}

// bytesBeside returns about how many bytes the errors of an operation take beside the response that shows them.
func bytesBeside(errs gqlerror.List, doc *document) (size int) {
	for _, err := range errs {
		size += bytesPerListed + len(err.Message) + bytesPerValue*len(err.Path)
		if err.Err != nil { // which leads to the document
			size += sizeOf(doc)
		}
	}
	return size
}

// bytesPerListed is what an error takes beside its text and path: itself, its extensions and its places in the document.
const bytesPerListed = 1 << 10

// key says what is asked, and by whom.
func (e *engine) key(ctx context.Context, op *operation, media string) respcache.Key {
	return respcache.Key{
		Operation: respcache.OperationHash(op.document.hash, op.definition.Name, op.canonicalVariables(), media),
		Identity:  e.responses.Identity(identityFrom(ctx).credentials),
	}
}

var verdicts = [...]string{respcache.Executed: verdictMiss, respcache.Hit: verdictHit, respcache.Shared: verdictShared}

// served takes note of a response that was executed for another request.
func (e *engine) served(ctx context.Context, r *respcache.Response) {
	if refused := noteOf(r).refused; refused != nil {
		e.identities.note(ctx, refused)
	}
}

// asksForCost reports whether a request wants to know what its operation costs. Such a one is executed whatever is kept.
func asksForCost(r *request) bool { return r.said(CostHeader) != "" }

// form is what, beside its text, decides about the meaning of a request and the form of its response.
func form(method, media string) string {
	switch posted := method == http.MethodPost; {
	case posted && media == typeJSON:
		return "POST " + typeJSON
	case posted:
		return "POST " + typeResponse
	case media == typeJSON:
		return "GET " + typeJSON
	default:
		return "GET " + typeResponse
	}
}

// repeats reports whether a request can be known again by its text.
func (e *engine) repeats(r *request, j *reqctx.Log) bool {
	return e.responses != nil && r.PathValue("documentId") == "" && !j.Explained && !asksForCost(r)
}

// repeat returns the response to a request whose text is that of one that was answered before, or nil.
func (e *engine) repeat(r *request, j *reqctx.Log, text []byte) *respcache.Response {
	if !e.repeats(r, j) {
		return nil
	}
	kept := e.responses.FindRequest(e.responses.Identity(r.credentials), form(r.Method, r.media), text)
	if kept != nil {
		n := noteOf(kept)
		j.Response, j.Info, j.Trusted, j.Points = verdictHit, n.asked, n.trusted, n.points
		e.served(r.Context(), kept)
	}
	return kept
}

// remember lets repeat answer a request by its text, as long as that means the same document: what it names may be
// registered, trusted or neither by then.
func (e *engine) remember(r *request, j *reqctx.Log, text []byte, p *params, op *operation, kept *respcache.Response) {
	if !e.repeats(r, j) {
		return
	}
	request, meant := persisted.Request{Query: p.Query, DocumentID: p.DocumentID, Extensions: p.Extensions}, op.document.text
	e.responses.StoreRequest(kept, form(r.Method, r.media), text, func() bool {
		named, err := e.cfg.Documents.Resolve(request)
		if err != nil || named.Text != meant {
			return false
		}
		named.Register()
		return true
	})
}
