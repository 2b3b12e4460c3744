package limits

import (
	"fmt"
	"reflect"
)

// Limits are the largest accepted values of a request. Every limit must be at least 1.
type Limits struct {
	// DocumentBytes limits the text of a document. The default is 65,536.
	DocumentBytes int
	// Tokens limits the words, values and signs of a document, comments included. The default is 1,500.
	Tokens int
	// NameBytes limits each name in a document, such as the name of a field, an alias or a variable. The default is 128.
	NameBytes int
	// Operations limits the operations that a document defines. The default is 10.
	Operations int
	// Fragments limits the named fragments that a document defines. The default is 50.
	Fragments int
	// Selections limits the number of fields and fragments in a document. The content of a fragment counts each time the fragment
	// is spread, and once if nothing spreads the fragment. The default is 1,000.
	Selections int
	// Depth limits the nesting of fields and inline fragments. It also limits the nesting of lists and objects in arguments,
	// variables and types. The default is 20.
	Depth int
	// Repeats limits how often one object selects the same response key, including selections in fragments. The default is 30.
	Repeats int
	// ListItems limits the items of each list and the members of each object in variables. The default is 1,000.
	ListItems int
	// VariableBytes limits the JSON text of the variables. The default is 131,072.
	VariableBytes int
	// Cost limits the points of an operation; see Plan.Cost. The default is 100,000.
	Cost int64
}

// Default returns the default limits.
func Default() Limits {
	return Limits{
		DocumentBytes: 64 << 10,
		Tokens:        1_500,
		NameBytes:     128,
		Operations:    10,
		Fragments:     50,
		Selections:    1_000,
		Depth:         20,
		Repeats:       30,
		ListItems:     1_000,
		VariableBytes: 128 << 10,
		Cost:          100_000,
	}
}

func (l Limits) check() error {
	v := reflect.ValueOf(l)
	for i := range v.NumField() {
		if n := v.Field(i).Int(); n < 1 {
			return fmt.Errorf("the limit %s is %d; it must be at least 1", v.Type().Field(i).Name, n)
		}
	}
	return nil
}
