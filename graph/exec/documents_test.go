package exec_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// writer writes random documents of a schema, with arguments, aliases, repeated fields, both kinds of fragments, directives and
// variables. A few documents are invalid because two different fields have the same response key.
type writer struct {
	*rand.Rand
	schema *ast.Schema
	// values returns a JSON value for an argument by its name and type.
	values func(w *writer, name string, t *ast.Type) any
	// streams contains the subscription fields to use. If streams is nil, writer uses all subscription fields.
	streams ast.FieldList

	fragments []string
	// spread maps each type to the names of its complete fragments, which other fragments may spread.
	spread    map[string][]string
	variables map[string]any
	// declared maps each variable to its type and default.
	declared map[string]string
	// fieldsLeft counts down with each field. At 0, writer writes no more fragments and, except in Query, only leaf fields.
	fieldsLeft int
}

// document returns a query and its variables.
func (w *writer) document() (text string, variables map[string]any) {
	return w.operation("query", func() string { return w.selection(w.schema.Query, 0) })
}

// subscription returns a subscription and its variables.
func (w *writer) subscription() (text string, variables map[string]any) {
	return w.operation("subscription", func() string {
		streams := w.streams
		if streams == nil {
			streams = w.schema.Subscription.Fields
		}
		f := pick(w.Rand, streams)
		return "{ e: " + f.Name + w.arguments(f) + " " + w.selection(w.schema.Types[f.Type.Name()], 1) + " }"
	})
}

// operation returns a document with one operation. root returns the selection set of the operation.
func (w *writer) operation(kind string, root func() string) (text string, variables map[string]any) {
	w.fragments, w.spread, w.variables, w.declared, w.fieldsLeft = nil, map[string][]string{}, map[string]any{}, map[string]string{}, 60
	selection := root()
	var declarations string
	for i, name := range slices.Sorted(maps.Keys(w.declared)) {
		if i > 0 {
			declarations += ", "
		}
		declarations += "$" + name + ": " + w.declared[name]
	}
	if declarations != "" {
		declarations = "(" + declarations + ")"
	}
	return kind + " Q" + declarations + " " + selection + "\n" + strings.Join(w.fragments, "\n"), w.variables
}

// selection returns a selection set of a type in braces.
func (w *writer) selection(t *ast.Definition, depth int) string {
	var parts []string
	for n := 1 + w.IntN(5); n > 0 || len(parts) == 0; n-- {
		parts = append(parts, w.part(t, depth))
		if w.IntN(5) == 0 {
			parts = append(parts, pick(w.Rand, parts)) // a repeated part, which the executor must merge
		}
	}
	return "{ " + strings.Join(parts, " ") + " }"
}

// part returns a field or a fragment of a type.
func (w *writer) part(t *ast.Definition, depth int) string {
	if depth < 6 && w.fieldsLeft > 0 {
		switch w.IntN(9) {
		case 0:
			on, name := w.typeCondition(t), ""
			if on != t || w.IntN(2) == 0 {
				name = " on " + on.Name
			}
			return "..." + name + w.directives() + " " + w.selection(on, depth+1)
		case 1:
			on := w.typeCondition(t)
			if known := w.spread[on.Name]; len(known) > 0 && w.IntN(3) > 0 {
				return "..." + pick(w.Rand, known) + w.directives()
			}
			body := w.selection(on, depth+1)
			name := fmt.Sprint("F", len(w.fragments))
			w.fragments = append(w.fragments, "fragment "+name+" on "+on.Name+" "+body)
			w.spread[on.Name] = append(w.spread[on.Name], name)
			return "..." + name + w.directives()
		}
	}
	return w.field(t, depth)
}

// typeCondition returns a type condition for a fragment within a selection on t.
func (w *writer) typeCondition(t *ast.Definition) *ast.Definition {
	fit := []*ast.Definition{t}
	if t.IsAbstractType() {
		fit = append(fit, w.schema.GetPossibleTypes(t)...)
	} else {
		fit = append(fit, w.schema.GetImplements(t)...)
	}
	return pick(w.Rand, fit)
}

func (w *writer) field(t *ast.Definition, depth int) string {
	w.fieldsLeft--
	if w.IntN(12) == 0 {
		return pick(w.Rand, []string{"__typename", "kind: __typename"}) + w.directives()
	}
	var fields []*ast.FieldDefinition
	for _, f := range t.Fields {
		leaf := w.schema.Types[f.Type.Name()].IsLeafType()
		if !strings.HasPrefix(f.Name, "__") && (leaf || depth < 6 && w.fieldsLeft > 0 || t.Name == "Query") {
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		return "__typename"
	}
	f := pick(w.Rand, fields)
	arguments := w.arguments(f)
	alias := ""
	if arguments != "" || w.IntN(4) == 0 { // equal fields get equal aliases, so that the executor must merge them
		h := fnv.New32a()
		_, _ = io.WriteString(h, t.Name+f.Name+arguments)
		alias = fmt.Sprintf("a%x: ", h.Sum32())
	}
	out := alias + f.Name + arguments + w.directives()
	if of := w.schema.Types[f.Type.Name()]; of.IsCompositeType() {
		out += " " + w.selection(of, depth+1)
	}
	return out
}

// arguments returns the arguments of a field in parentheses. It returns "" if it writes no arguments.
func (w *writer) arguments(f *ast.FieldDefinition) (arguments string) {
	for _, a := range f.Arguments {
		required := a.Type.NonNull && a.DefaultValue == nil
		if required || w.IntN(3) == 0 {
			arguments += ", " + a.Name + ": " + w.argument(a)
		}
	}
	if arguments == "" {
		return ""
	}
	return "(" + arguments[2:] + ")"
}

// argument returns a literal for an argument, or a variable.
func (w *writer) argument(a *ast.ArgumentDefinition) string {
	v := w.values(w, a.Name, a.Type)
	if w.IntN(2) == 0 {
		return w.literal(v, a.Type)
	}
	name := fmt.Sprint("v", len(w.declared))
	w.declared[name] = a.Type.String()
	if w.IntN(4) == 0 && (v != nil || !a.Type.NonNull) {
		w.declared[name] += " = " + w.literal(w.values(w, a.Name, a.Type), a.Type)
	}
	if a.Type.NonNull || w.IntN(4) > 0 {
		w.variables[name] = v
	}
	return "$" + name
}

func (w *writer) literal(v any, t *ast.Type) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = w.literal(v[i], t.Elem)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+": "+w.literal(v[name], w.schema.Types[t.Name()].Fields.ForName(name).Type))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case string:
		if w.schema.Types[t.Name()].Kind == ast.Enum {
			return v
		}
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	default:
		return fmt.Sprint(v)
	}
}

// directives returns @skip and @include with literals or variables. In most cases it returns "".
func (w *writer) directives() (out string) {
	for _, name := range []string{"skip", "include"} {
		if w.IntN(12) > 0 {
			continue
		}
		on := strconv.FormatBool((w.IntN(4) == 0) == (name == "skip"))
		if w.IntN(2) == 0 {
			variable := fmt.Sprint("if", w.IntN(3))
			if _, known := w.variables[variable]; !known {
				w.variables[variable], w.declared[variable] = w.IntN(2) == 0, "Boolean!"
			}
			on = "$" + variable
		}
		out += " @" + name + "(if: " + on + ")"
	}
	return out
}

// valuesOf returns a function that returns values for arguments. Most of the returned ids exist in the universe.
func valuesOf(u *universe) func(w *writer, name string, t *ast.Type) any {
	ids := u.ids()
	var value func(w *writer, name string, t *ast.Type) any
	value = func(w *writer, name string, t *ast.Type) any {
		if !t.NonNull && w.IntN(6) == 0 {
			return nil
		}
		if t.Elem != nil {
			list := make([]any, w.IntN(5))
			for i := range list {
				list[i] = value(w, name, t.Elem)
			}
			return list
		}
		switch d := w.schema.Types[t.Name()]; {
		case d.Kind == ast.Enum:
			return pick(w.Rand, d.EnumValues).Name
		case d.Kind == ast.InputObject:
			object := map[string]any{}
			for _, f := range d.Fields {
				if w.IntN(3) == 0 {
					object[f.Name] = value(w, f.Name, f.Type)
				}
			}
			return object
		}
		invalid := w.IntN(25) == 0
		switch t.Name() {
		case "Boolean":
			return w.IntN(2) == 0
		case "Int":
			if invalid {
				return pick(w.Rand, []int{-1, 0, 501, 1 << 30})
			}
			return 1 + w.IntN(60)
		case "Decimal":
			if invalid {
				return pick(w.Rand, []any{"NaN", "", 3, -1})
			}
			return pick(w.Rand, []any{"0.5", "10", 2, 0.25})
		case "Address":
			if invalid {
				return "0x1"
			}
			return string(pick(w.Rand, wallets))
		case "Date":
			if invalid {
				return "2026-02-31"
			}
			return fmt.Sprintf("2026-03-%02d", 1+w.IntN(14))
		case "DateTime":
			if invalid {
				return "yesterday"
			}
			return fmt.Sprintf("2026-03-%02dT10:00:00+01:00", 1+w.IntN(14))
		case "ID":
			if invalid {
				return "?"
			}
			return pick(w.Rand, ids[4:])
		}
		if invalid {
			return pick(w.Rand, []string{"a,b", "", "unknown", "x\ny"})
		}
		switch name {
		case "tokenId", "tokenIds":
			return tokenID(w.IntN(tokens + 1))
		case "marketId", "marketIds":
			return marketID(w.IntN(markets + 1))
		case "eventId":
			return eventID(w.IntN(events + 1))
		case "slug":
			return pick(w.Rand, []string{"slug-", "event-slug-"}) + fmt.Sprint(w.IntN(4))
		case "after":
			return ""
		default:
			return "text"
		}
	}
	return value
}
