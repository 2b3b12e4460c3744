package demo

import (
	"bytes"
	"encoding/json"
	"strings"
)

// document returns the body as JSON values, or nil if the body is not JSON.
func (a *answer) document() any {
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		return nil
	}
	return doc
}

func (a *answer) replace(doc any) {
	body, _ := json.Marshal(doc) // cannot fail for decoded values
	a.body = append(a.body[:0], body...)
}

// drift changes the form of the answer as the fault requires. Only FaultHalfBroken also changes the data: it makes every second row
// unreadable.
func (a *answer) drift(kind FaultKind) {
	if kind == FaultNested {
		a.body = append(append([]byte(`{"success":true,"data":`), a.body...), '}')
		return
	}
	doc := a.document()
	if doc == nil {
		return
	}
	switch kind {
	case FaultHalfBroken:
		breakRows(doc)
	case FaultText:
		doc = texts(doc)
	case FaultUnknownFields:
		addUnknownMembers(doc)
	}
	a.replace(doc)
}

// breakRows replaces the second, fourth … row of the outer lists of objects.
func breakRows(value any) {
	m, _ := value.(map[string]any)
	for _, member := range m {
		rows, _ := member.([]any)
		for i := range rows {
			if _, isRow := rows[i].(map[string]any); isRow && i%2 == 1 {
				rows[i] = []any{"unexpected", i}
			}
		}
	}
}

// texts returns value with its numbers as strings.
func texts(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case []any:
		for i := range v {
			v[i] = texts(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = texts(v[name])
		}
	}
	return value
}

func addUnknownMembers(value any) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			addUnknownMembers(v[i])
		}
	case map[string]any:
		for _, member := range v {
			addUnknownMembers(member)
		}
		v["unheardOf"] = map[string]any{"deep": []any{1, nil, map[string]any{"price": "?"}}}
		v[""] = false
	}
}

// rewrite replaces the values of members in the body by the results of f, and deletes the members for which f returns false. If
// tokenID is not empty, rewrite applies f only to values in objects with this tokenId. It does not replace lists of objects, but
// applies f to the values in their objects.
func (a *answer) rewrite(tokenID string, f func(name string, value any) (any, bool)) {
	if doc := a.document(); doc != nil {
		spoil(doc, tokenID == "", tokenID, f)
		a.replace(doc)
	}
}

// spoil walks an answer and rewrites the members of its objects in place. inside is true if tokenID is empty, or if value is in an
// object with this tokenId.
func spoil(value any, inside bool, tokenID string, f func(name string, value any) (any, bool)) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			spoil(element, inside, tokenID, f)
		}
	case map[string]any:
		inside = inside || value["tokenId"] == tokenID
		for name, member := range value {
			if list, ok := member.([]any); ok && len(list) > 0 {
				if _, ok := list[0].(map[string]any); ok {
					spoil(list, inside, tokenID, f)
					continue
				}
			}
			if !inside {
				continue
			}
			if spoiled, keep := f(name, member); keep {
				value[name] = spoiled
			} else {
				delete(value, name)
			}
		}
	}
}

func wrongType(_ string, value any) (any, bool) {
	switch value.(type) {
	case string, json.Number:
		return map[string]any{"unexpected": []any{value}}, true
	case []any, map[string]any:
		return true, true
	}
	return []any{"unexpected"}, true
}

// withoutFields makes rewrite keep only identifiers.
func withoutFields(name string, value any) (any, bool) {
	return value, name == "id" || strings.HasSuffix(name, "Id")
}
