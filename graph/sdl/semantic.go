package sdl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

const semanticHead = `"At these levels, null always comes with an entry in ` + "`errors`" + `. Level 0 is the field, and level 1 is the items of its list."
directive @semanticNonNull(levels: [Int] = [0]) on FIELD_DEFINITION

`

var (
	onlyField     = []int{0}
	fieldAndItems = []int{0, 1}
)

// nonNull contains the nullable fields that are null only after an error. It maps each of these fields to the levels in
// @semanticNonNull. Level 0 is the field itself, and level 1 is the items of its list. The description of any other nullable field
// says when the field is null.
var nonNull = map[string][]int{
	"Query.user":          onlyField,
	"Query.markets":       onlyField,
	"Query.searchMarkets": onlyField,
	"Query.searchEvents":  onlyField,
	"Query.categories":    onlyField,
	"Query.questions":     onlyField,
	"Query.token":         onlyField,
	"Query.tokens":        fieldAndItems,
	"Query.tokenPrices":   onlyField,
	"Query.spreads":       onlyField,
	"User.positions":      onlyField,
	"User.orders":         onlyField,
	"User.trades":         onlyField,
	"User.history":        onlyField,
	"User.portfolio":      onlyField,
	"Event.markets":       onlyField,
	"Market.trades":       onlyField,
	"TokenPrice.token":    onlyField,
	"Spread.token":        onlyField,
	"Orderbook.token":     onlyField,
	"ServiceStatus.venue": onlyField,
}

// addSemanticNonNull adds @semanticNonNull to the fields in nonNull. It returns an error if the schema lacks such a field. It also
// returns an error if a level does not exist in the field's type, or is already non-null.
func (a *annotation) addSemanticNonNull() error {
	missing := maps.Clone(nonNull)
	for _, def := range a.doc.Definitions {
		for _, f := range def.Fields {
			name := def.Name + "." + f.Name
			levels, ok := nonNull[name]
			if !ok {
				continue
			}
			delete(missing, name)
			t := f.Type
			for level := range slices.Max(levels) + 1 {
				if t == nil {
					return fmt.Errorf("%s has no level %d", name, level)
				}
				if t.NonNull && slices.Contains(levels, level) {
					return fmt.Errorf("%s is never null at level %d", name, level)
				}
				t = t.Elem
			}
			d := directive("semanticNonNull")
			if !slices.Equal(levels, onlyField) {
				list := &ast.Value{Kind: ast.ListValue}
				for _, level := range levels {
					list.Children = append(list.Children, &ast.ChildValue{Value: &ast.Value{Kind: ast.IntValue, Raw: strconv.Itoa(level)}})
				}
				d = directive("semanticNonNull", &ast.Argument{Name: "levels", Value: list})
			}
			f.Directives = append(f.Directives, d)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the schema has no %s", strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return nil
}
