package limits

import (
	"fmt"
	"reflect"
)

// Limits bounds requests. Every limit is the greatest accepted value and must be at least 1.
type Limits struct {
	// DocumentBytes bounds the text of a document. Default 65,536.
	DocumentBytes int
	// Tokens bounds the words, values and signs of a document, comments included. Default 1,500.
	Tokens int
	// NameBytes bounds each name in a document: of a field, alias, argument, variable, type or operation. Default 128.
	NameBytes int
	// Operations bounds the operations that a document defines. Default 10.
	Operations int
	// Fragments bounds the named fragments that a document defines. Default 50.
	Fragments int
	// Selections bounds the fields and fragments of all operations together. The content of a fragment counts each time the
	// fragment is spread. Default 1,000.
	Selections int
	// Depth bounds the nesting of fields and fragments. It also bounds the nesting of lists and objects in arguments, variables
	// and types. Default 20.
	Depth int
	// RootFields bounds the fields at the root of an operation. Fields with the same response key count once. Default 100.
	RootFields int
	// Aliases bounds the number of fields with an alias in a document. Default 200.
	Aliases int
	// Repeats bounds the number of times that a response key is selected on one object, including selections in fragments. Default
	// 30.
	Repeats int
	// Directives bounds the directives of a document. Default 50.
	Directives int
	// ListItems bounds the items of each list and the members of each object, in a document or in variables. Default 1,000.
	ListItems int
	// VariableBytes bounds the JSON text of the variables. Default 131,072.
	VariableBytes int
	// Cost bounds the points of an operation; see Plan.Cost. Default 100,000.
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
		RootFields:    100,
		Aliases:       200,
		Repeats:       30,
		Directives:    50,
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
