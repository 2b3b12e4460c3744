package persisted

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"

	"oddsgraph/httpapi/filewatch"
)

const (
	maxManifest  = 32 << 20
	maxDocuments = 10_000
	// maxReasons is the greatest number of invalid documents that an error names.
	maxReasons = 10

	apolloFormat = "apollo-persisted-query-manifest"
)

// trustedDocument is a document of a manifest or of the service's own pages.
type trustedDocument struct {
	text, name string
	hash       hash
}

// manifest contains the trusted documents of one version of the file. It is immutable.
type manifest struct {
	byHash map[hash]*trustedDocument
	// byID contains the documents whose ids are not hashes.
	byID map[string]*trustedDocument
}

func (m *manifest) find(i id) *trustedDocument {
	if i.hashed {
		return m.byHash[i.hash]
	}
	return m.byID[i.custom]
}

// operation is an element of a manifest. Only Apollo's manifest sets name and kind.
type operation struct{ id, text, name, kind string }

// parseManifest parses a manifest. The manifest has Apollo's format, or is a map of ids to texts, as Relay and graphql-codegen
// write it. If documents are invalid, the error names up to maxReasons of them.
func parseManifest(content []byte, validate func(text string) (*ast.QueryDocument, error)) (*manifest, error) {
	operations, err := readManifest(content)
	if err != nil {
		return nil, err
	}
	if len(operations) == 0 {
		return nil, errors.New("the manifest has no documents")
	}
	m := &manifest{byHash: make(map[hash]*trustedDocument, len(operations)), byID: map[string]*trustedDocument{}}
	var broken []error
	for _, op := range operations {
		if err := m.add(op, validate); err != nil {
			broken = append(broken, fmt.Errorf("document %q: %w", op.id, err))
		}
	}
	if more := len(broken) - maxReasons; more > 0 {
		broken = append(broken[:maxReasons], fmt.Errorf("and %d more documents", more))
	}
	if len(broken) > 0 {
		return nil, errors.Join(broken...)
	}
	return m, nil
}

func (m *manifest) add(op operation, validate func(text string) (*ast.QueryDocument, error)) error {
	if len(op.id) > maxID {
		return fmt.Errorf("an id is at most %d characters long", maxID)
	}
	name, err := parseID(op.id)
	if err != nil {
		return fmt.Errorf("an id is %s", idForm)
	}
	if len(op.text) > maxText {
		return fmt.Errorf("it is longer than %d bytes", maxText)
	}
	t := &trustedDocument{text: op.text, hash: hashOf(op.text)}
	if name.hashed && name.hash != t.hash {
		return fmt.Errorf("its id is a hash, but its text has the hash %s", hex.EncodeToString(t.hash[:]))
	}
	doc, err := validate(op.text)
	if err != nil {
		return err
	}
	if t.name, err = operationName(op, doc); err != nil {
		return err
	}
	if known := m.byHash[t.hash]; known != nil {
		t = known // the same text under another id
	}
	if other := m.byID[name.custom]; other != nil && other != t {
		return errors.New("another document has the same id")
	}
	if !name.hashed {
		m.byID[name.custom] = t
	}
	m.byHash[t.hash] = t
	return nil
}

// operationName returns the name of a document in metrics. If op.name is set, the result is op.name, and the document must have
// an operation with this name and with the type op.kind. If op.name is empty, the result is the name of the document's only
// operation. But if the document has several operations or an anonymous operation, the result is op.id.
func operationName(op operation, doc *ast.QueryDocument) (string, error) {
	if op.name != "" {
		definition := doc.Operations.ForName(op.name)
		switch {
		case definition == nil:
			return "", fmt.Errorf("it has no operation %s", op.name)
		case op.kind != string(definition.Operation):
			return "", fmt.Errorf("its operation %s is a %s, not a %s", op.name, definition.Operation, op.kind)
		}
		return op.name, nil
	}
	if len(doc.Operations) == 1 && doc.Operations[0].Name != "" {
		return doc.Operations[0].Name, nil
	}
	return op.id, nil
}

func readManifest(content []byte) (operations []operation, err error) {
	apollo := false
	err = filewatch.Members(content, func(name string, _ json.RawMessage) error {
		apollo = apollo || name == "format"
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the manifest %w", err)
	case apollo:
		return readApollo(content)
	}
	seen := map[string]bool{}
	err = filewatch.Members(content, func(id string, value json.RawMessage) error {
		text, ok := filewatch.Text(value)
		switch {
		case len(operations) == maxDocuments:
			return fmt.Errorf("the manifest has more than %d documents", maxDocuments)
		case !ok:
			return fmt.Errorf("document %.*q must be a string; a manifest is a map of ids to texts, or has the format %q", maxID, id, apolloFormat)
		case seen[id]:
			return fmt.Errorf("document %.*q is present twice", maxID, id)
		}
		seen[id] = true
		operations = append(operations, operation{id: id, text: text})
		return nil
	})
	return operations, err
}

// readApollo reads the elements of a manifest in Apollo's format. It ignores unknown fields, because the format may get new fields.
func readApollo(content []byte) (operations []operation, err error) {
	var top struct {
		Format     any             `json:"format"`
		Version    json.RawMessage `json:"version"`
		Operations json.RawMessage `json:"operations"`
	}
	if err := json.Unmarshal(content, &top); err != nil || top.Format != apolloFormat || string(top.Version) != "1" {
		return nil, fmt.Errorf("the manifest must have the format %q and version 1", apolloFormat)
	}
	if len(top.Operations) == 0 || top.Operations[0] != '[' {
		return nil, errors.New("operations must be a list")
	}
	err = filewatch.Elements(top.Operations, func(i int, value json.RawMessage) error {
		var op struct{ ID, Name, Type, Body string }
		switch err := json.Unmarshal(value, &op); {
		case i == maxDocuments:
			return fmt.Errorf("the manifest has more than %d documents", maxDocuments)
		case err != nil || op.ID == "" || op.Name == "" || op.Type == "" || op.Body == "":
			return fmt.Errorf("operations[%d] must be an object with the strings id, name, type and body", i)
		}
		operations = append(operations, operation{id: op.ID, text: op.Body, name: op.Name, kind: op.Type})
		return nil
	})
	return operations, err
}
