package limits

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"oddsgraph/internal/market"
)

// maxSyntaxError is the size in bytes to which the text of a syntax error is cut. The text may quote a long string of the client.
const maxSyntaxError = 300

// Guard refuses expensive requests. It is safe for concurrent use.
type Guard struct{ limits Limits }

// New returns a guard for operations on a schema. It returns an error if a limit is less than 1, or if the table of weights does
// not fit the schema.
func New(limits Limits, schema *ast.Schema) (*Guard, error) {
	if err := limits.check(); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if err := checkWeights(schema); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return &Guard{limits}, nil
}

// Document parses and measures a document, but does not validate it. The returned document has at least one operation, and its
// validation takes a limited time. Document refuses a document in which a fragment spreads itself, also through other fragments. If
// several fragments have the same name, Document measures the first one at each spread of the name. Validation also uses the first
// one. The calling function may change the returned document.
//
// A syntax error is a gqlerror.Error that wraps a market.Error with CodeParseFailed. It has a location if the parser gave one.
func (g *Guard) Document(text string) (*ast.QueryDocument, error) {
	if n := len(text); n > g.limits.DocumentBytes {
		return nil, refuse(RuleDocumentBytes, "the document has %d bytes; at most %d are accepted: move values into variables", n, g.limits.DocumentBytes)
	}
	doc, err := g.parse(text)
	if err == nil {
		err = measure(doc, &g.limits)
	}
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// parse parses a text. The parser is recursive, so the limit of tokens also limits its stack.
func (g *Guard) parse(text string) (*ast.QueryDocument, error) {
	if !utf8.ValidString(text) {
		return nil, syntaxError("the document is not valid UTF-8", nil)
	}
	text, err := plainEscapes(text)
	if err != nil {
		return nil, err
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, g.limits.Tokens)
	var located *gqlerror.Error
	switch {
	case errors.As(err, &located) && strings.HasPrefix(located.Message, "exceeded token limit"):
		return nil, refuse(RuleTokens, "the document has more than %d tokens (words, values and signs): move values into variables, or send several requests", g.limits.Tokens)
	case located != nil:
		return nil, syntaxError(located.Message, located.Locations)
	case err != nil:
		return nil, fmt.Errorf("parsing a document: %w", err)
	case len(doc.Operations) == 0:
		return nil, syntaxError("the document has no operation", nil)
	}
	return doc, nil
}

func syntaxError(message string, at []gqlerror.Location) error {
	if len(message) > maxSyntaxError {
		message = strings.ToValidUTF8(message[:maxSyntaxError], "") + "…"
	}
	return &gqlerror.Error{
		Message: message, Locations: at, Extensions: map[string]any{"code": string(market.CodeParseFailed)},
		Err: market.Errorf(market.CodeParseFailed, "%s", message).Because(rule(RuleSyntax)),
	}
}
