// Package sample contains a schema for the tests of the executor, with the schema's Go types and generated code.
package sample

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// Money is a number of cents.
type Money int

// MarshalMoney writes the cents as an integer.
func MarshalMoney(m Money) graphql.ContextMarshaler {
	return graphql.ContextWriterFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, strconv.Itoa(int(m)))
		return err
	})
}

// UnmarshalMoney reads a number of cents. It returns an error for a negative number and for a nil context.
func UnmarshalMoney(ctx context.Context, v any) (Money, error) {
	if ctx == nil {
		return 0, errors.New("there is no context")
	}
	n, err := graphql.UnmarshalInt(v)
	if err == nil && n < 0 {
		err = errors.New("an amount must not be negative")
	}
	return Money(n), err
}

// Grade is a scalar with its own marshaler.
type Grade string

// MarshalGQL implements graphql.Marshaler.
func (g Grade) MarshalGQL(w io.Writer) {
	text, _ := json.Marshal(string(g))
	_, _ = w.Write(text)
}

// UnmarshalGQL implements graphql.Unmarshaler.
func (g *Grade) UnmarshalGQL(v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%T is no grade", v)
	}
	*g = Grade(text)
	return nil
}

// Node contains the fields that Leaf and Branch have in common.
type Node struct {
	ID     string
	Panics bool
}

// Leaf is an object with scalars.
type Leaf struct {
	Node
	Colour *Colour
	Weight *Money
	Worth  *Money
	Grade  Grade
	Any    any
	Tags   []string
	Twins  []*Leaf
}

// Branch is an object. In the schema, it also has fields of object types and of lists of objects.
type Branch struct{ Node }

// Name returns a name. It panics if Panics is set.
func (n Node) Name() string {
	if n.Panics {
		panic("no name for " + n.ID)
	}
	return "name of " + n.ID
}

// IsNamed says that the type implements Named.
func (Leaf) IsNamed() {}

// IsThing marks the type as a member of the union Thing.
func (Leaf) IsThing() {}

// IsNamed says that the type implements Named.
func (Branch) IsNamed() {}

// IsThing marks the type as a member of the union Thing.
func (Branch) IsThing() {}
