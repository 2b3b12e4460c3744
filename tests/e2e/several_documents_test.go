package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// document returns a random query.
func (w *trio) document() (query string) {
	w.paged = ""
	roots := []string{"market", "markets", "event", "searchMarkets", "searchEvents", "categories", "token", "tokens", "tokenPrices", "spreads"}
	if w.driver != "generic" { // a further venue of the generic driver has no accounts
		roots = append(roots, "user")
	}
	if len(w.nodes) > 0 {
		roots = append(roots, "node", "nodes")
	}
	w.random.Shuffle(len(roots), func(i, j int) { roots[i], roots[j] = roots[j], roots[i] })
	for _, name := range roots[:1+w.random.IntN(2)] {
		query += w.field(w.schema.Query.Fields.ForName(name), 3, name, false)
	}
	if w.paged != "" {
		return "query ($after: String) { " + query + "}"
	}
	return "{ " + query + "}"
}

// field returns a field with random arguments and a random selection of the given depth. In a list, inList is true.
func (w *trio) field(f *ast.FieldDefinition, depth int, path string, inList bool) string {
	of := w.schema.Types[f.Type.Name()]
	var arguments, selection []string
	if f.Name == "categories" {
		return w.leaves(f.Name+only+`(venue: "v")`+only, of)
	}
	paged := w.paged == "" && !inList && f.Arguments.ForName("after") != nil
	if paged {
		w.paged = path
		arguments, selection = append(arguments, "after: $after"), append(selection, "pageInfo { hasNextPage endCursor }")
	}
	switch f.Name {
	case "market":
		if len(f.Arguments) > 0 {
			arguments = append(arguments, w.pick([]string{"by: { marketId: %s }", "by: { slug: %s }", "marketId: %s"}))
			arguments[0] = fmt.Sprintf(arguments[0], w.id(map[bool]string{true: "slug", false: "marketId"}[strings.Contains(arguments[0], "slug")]))
		}
	case "event":
		if len(f.Arguments) > 0 {
			arguments = append(arguments, w.pick([]string{"by: { eventId: ", "by: { eventId: ", "by: { eventId: "})+w.id("eventId")+" }")
		}
	case "fillEstimate":
		arguments = append(arguments, "side: "+w.pick([]string{"BUY", "SELL"}), w.pick([]string{`for: { amount: "50" }`, `for: { size: "120" }`, `size: "3"`}))
	default:
		for _, a := range f.Arguments {
			if text := w.argument(f, a); text != "" && (a.Type.NonNull && a.DefaultValue == nil || a.Name == "first" || w.random.IntN(2) == 0) {
				arguments = append(arguments, a.Name+": "+text)
			}
		}
	}
	text := f.Name
	if len(arguments) > 0 {
		text = venueArguments(f.Name + "(" + strings.Join(arguments, " ") + ")")
	}
	if of.IsLeafType() {
		return text + " "
	}
	if of.IsAbstractType() {
		on := w.schema.GetPossibleTypes(of)
		return text + " { id ... on " + w.selectionOf(on[w.random.IntN(len(on))], depth, path, inList, nil) + "} "
	}
	return strings.TrimSuffix(text, " ") + strings.TrimPrefix(w.selectionOf(of, depth, path, inList || f.Type.Elem != nil, selection), of.Name)
}

// leaves returns a field with all leaves of its type.
func (w *trio) leaves(text string, of *ast.Definition) string {
	for _, f := range of.Fields {
		text += map[bool]string{true: " { ", false: " "}[f == of.Fields[0]] + f.Name
	}
	return text + " } "
}

// selectionOf returns the name of a type and a selection of its fields.
func (w *trio) selectionOf(of *ast.Definition, depth int, path string, inList bool, selection []string) string {
	fields := slices.Clone(of.Fields)
	w.random.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	for _, f := range fields[:1+w.random.IntN(min(len(fields), 7))] {
		if w.schema.Types[f.Type.Name()].IsLeafType() || depth > 0 && f.Name != "pageInfo" {
			selection = append(selection, w.field(f, depth-1, path+"."+f.Name, inList))
		}
	}
	return of.Name + " { __typename " + strings.Join(selection, " ") + " } "
}

func (w *trio) pick(choices []string) string { return choices[w.random.IntN(len(choices))] }

// id returns an identifier of the venue as a string of GraphQL. A few identifiers are unknown or malformed.
func (w *trio) id(name string) string {
	if w.random.IntN(12) == 0 {
		return `"` + own + w.pick([]string{"none", "a,b", "v:x", "a:b"}) + `"`
	}
	return `"` + own + w.pick(w.ids[name]) + `"`
}

// argument returns a random value of an argument, or "" for an argument that stays away.
func (w *trio) argument(f *ast.FieldDefinition, a *ast.ArgumentDefinition) string {
	several := func(one func() string) string {
		out := "["
		for range 1 + w.random.IntN(3) {
			out += one() + " "
		}
		return out + "]"
	}
	global := func() string { return fmt.Sprint(`"`, mark, w.random.IntN(len(w.nodes)), mark, `"`) }
	dates := map[string][]string{"Date": {`"2026-03-12"`, `"2026-03-14"`}, "DateTime": {`"2026-02-12T00:00:00Z"`, `"2026-03-14T00:00:00Z"`}}
	switch a.Name {
	case "tokenId", "marketId", "eventId":
		return w.id(a.Name)
	case "tokenIds", "marketIds":
		return several(func() string { return w.id(strings.TrimSuffix(a.Name, "s")) })
	case "id":
		return global()
	case "ids":
		return several(global)
	case "address":
		return `"` + w.pick([]string{addressOf3, addressOf50, addressOfAny}) + `"`
	case "query":
		return w.pick([]string{`""`, `""`, `"will"`})
	case "filter":
		return w.pick([]string{`{ status: [OPEN] }`, `{ status: [OPEN] }`, `{ status: [RESOLVED CLOSED] }`, `{ category: "Crypto" }`, `{ endsAfter: "2026-06-01T00:00:00Z" }`})
	case "from", "to":
		return w.pick(dates[a.Type.Name()][map[string]int{"from": 0, "to": 1}[a.Name]:][:1])
	case "first", "points", "depth":
		return fmt.Sprint(1 + w.random.IntN(3))
	case "minSize":
		return `"20"`
	case "redeemable":
		return w.pick([]string{"true", "false"})
	case "outcome":
		return w.pick([]string{`"Yes"`, `"no"`, `"Other"`})
	}
	if of := w.schema.Types[a.Type.Name()]; of.Kind == ast.Enum {
		value := of.EnumValues[w.random.IntN(len(of.EnumValues))].Name
		if a.Type.Elem != nil {
			return "[" + value + "]"
		}
		return value
	}
	return ""
}
