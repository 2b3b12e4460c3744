package sdl

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const semanticHead = `"Null only together with an entry in ` + "`errors`" + `, at these levels: 0 is the field, 1 the items of its list."
directive @semanticNonNull(levels: [Int] = [0]) on FIELD_DEFINITION

`

var (
	field         = []int{0}
	fieldAndItems = []int{0, 1}
)

// nonNull contains the nullable fields that are null only after an error. It maps each of these fields to the levels in
// @semanticNonNull. Level 0 is the field itself, and level 1 is the items of its list. The description of any other nullable field
// says when the field is null.
var nonNull = map[string][]int{
	"Query.user":          field,
	"Query.markets":       field,
	"Query.searchMarkets": field,
	"Query.searchEvents":  field,
	"Query.categories":    field,
	"Query.token":         field,
	"Query.tokens":        fieldAndItems,
	"Query.tokenPrices":   field,
	"Query.spreads":       field,
	"User.positions":      field,
	"User.orders":         field,
	"User.trades":         field,
	"User.history":        field,
	"User.portfolio":      field,
	"Event.markets":       field,
	"Market.trades":       field,
	"TokenPrice.token":    field,
	"Spread.token":        field,
	"Orderbook.token":     field,
	"ServiceStatus.venue": field,
}

// semantic adds @semanticNonNull to the fields in nonNull. It returns an error if the schema lacks such a field. It also returns an
// error if a level does not exist in the field's type, or is already non-null.
func (a *annotation) semantic() error {
	known := maps.Clone(nonNull)
	for _, def := range a.doc.Definitions {
		for _, f := range def.Fields {
			name := def.Name + "." + f.Name
			levels, ok := nonNull[name]
			if !ok {
				continue
			}
			delete(known, name)
			t := f.Type
			for level := range slices.Max(levels) + 1 {
				if t == nil || t.NonNull && slices.Contains(levels, level) {
					return fmt.Errorf("%s is never null at level %d", name, level)
				}
				t = t.Elem
			}
			d := directive("semanticNonNull")
			if !slices.Equal(levels, field) {
				d = directive("semanticNonNull", "levels", levels)
			}
			f.Directives = append(f.Directives, d)
		}
	}
	if len(known) > 0 {
		return fmt.Errorf("the schema has no %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	return nil
}
