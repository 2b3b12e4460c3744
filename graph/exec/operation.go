package exec

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// maxVariants is how many combinations of the values of conditions are kept compiled.
const maxVariants = 16

// Operation is an operation of a document that was found valid. Which fields it has, and in which order, depends on the
// variables in @skip and @include, so it is compiled for each combination of their values that comes. It is safe for
// concurrent use, keeps the document, and is to be kept beside it.
type Operation struct {
	compiler   *Compiler
	document   *ast.QueryDocument
	definition *ast.OperationDefinition
	// grown is told how many bytes were compiled.
	grown func(bytes int)
	// switches are the variables that fields depend on, sorted.
	switches []string
	// size is that of the last result.
	size atomic.Int64

	// variants are compiled under mu and read without it, by the values of the switches. A map does not change any more.
	mu       sync.Mutex
	variants atomic.Pointer[map[string]*variant]
}

// variant is an operation compiled for some values of its switches.
type variant struct {
	root *Selection
	// slots counts the fields whose arguments are decoded in executions, bytes is about what the variant takes.
	slots, bytes int
}

// Operation returns an operation of a document. It is compiled when it is executed; grown is told then how many bytes that
// takes, so that they can be bounded together with the document. It must not execute the operation.
func (c *Compiler) Operation(doc *ast.QueryDocument, op *ast.OperationDefinition, grown func(bytes int)) *Operation {
	return &Operation{compiler: c, document: doc, definition: op, grown: grown, switches: switchesOf(doc, op)}
}

// Execute runs one pass over a query: it appends the data to buf. variables are those of the operation, coerced and with
// defaults. Resolvers get an Execution as their context. data is nil where the operation can't be executed with its variables.
// room bounds the data and errors together; nil is no bound. What it refuses is the only error then, and the data are null.
func (o *Operation) Execute(ctx context.Context, variables map[string]any, buf []byte, room Room) (data []byte, errs []Error) {
	v, err := o.variant(variables)
	if err != nil {
		return nil, []Error{{Err: err}}
	}
	return o.run(ctx, variables, buf, room, v, func(x *Execution) bool { return o.compiler.query(x, v.root) })
}

// run runs one pass, in which write writes the root and reports whether it is not null.
func (o *Operation) run(ctx context.Context, variables map[string]any, buf []byte, room Room, v *variant, write func(x *Execution) bool) (data []byte, errs []Error) {
	x := executions.Get().(*Execution)
	x.Context, x.Buf, x.variables = ctx, buf, variables
	if size := x.enter(room, int(o.size.Load())); cap(buf)-len(buf) < size || cap(buf) == 0 {
		x.Buf = slices.Grow(buf, size+size/8+64) // a buffer that was good for the last result may be good for this one
	}
	x.arguments = slices.Grow(x.arguments, v.slots)[:v.slots]
	if !write(x) {
		x.Null()
	}
	if last := len(v.root.Fields) - 1; last >= 0 && len(x.Buf) > x.Limit {
		x.Full(&v.root.Fields[last]) // nothing was written behind it that would have asked
	}
	data = x.Buf
	full := x.full
	if full {
		data = append(data[:len(buf)], "null"...)
	}
	if len(x.errs) > 0 {
		errs = slices.Clone(x.errs)
	}
	x.release() // unless something panicked and may still hold it
	if !full {
		o.size.Store(int64(len(data) - len(buf)))
	}
	return data, errs
}

// variant returns the operation as compiled for variables.
func (o *Operation) variant(variables map[string]any) (*variant, error) {
	var bits [16]byte
	key := bits[:0]
	for _, name := range o.switches {
		on, ok := variables[name].(bool)
		if !ok {
			return nil, gqlerror.Errorf("variable $%s is null; @skip and @include need true or false", name)
		}
		bit := byte('0')
		if on {
			bit = '1'
		}
		key = append(key, bit)
	}
	if known := o.variants.Load(); known != nil {
		if v := (*known)[string(key)]; v != nil {
			return v, nil
		}
	}
	return o.compile(string(key))
}

// compile compiles the operation for the values of its switches, and keeps the result unless there are too many.
func (o *Operation) compile(key string) (*variant, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	variants := map[string]*variant{}
	if known := o.variants.Load(); known != nil {
		if v := (*known)[key]; v != nil {
			return v, nil
		}
		variants = maps.Clone(*known)
	}
	values := make(map[string]any, len(o.switches))
	for i, name := range o.switches {
		values[name] = key[i] == '1'
	}
	v, err := compileOperation(o.compiler, o.document, o.definition, values)
	if err != nil || len(variants) == maxVariants {
		return v, err
	}
	variants[key] = v
	o.variants.Store(&variants)
	o.grown(v.bytes)
	return v, nil
}

// Compile compiles the operation for variables before Execute or Subscribe needs it. own is about how many bytes a Stream with them
// takes for itself, since the operation keeps too many other variants.
func (o *Operation) Compile(variables map[string]any) (own int, err error) {
	v, err := o.variant(variables)
	if err != nil {
		return 0, err
	}
	for _, kept := range *o.variants.Load() {
		if kept == v {
			return 0, nil
		}
	}
	return v.bytes, nil
}

// switchesOf returns the variables in the @skip and @include that an operation reaches.
func switchesOf(doc *ast.QueryDocument, op *ast.OperationDefinition) []string {
	var names []string
	seen := map[string]bool{}
	directives := func(list ast.DirectiveList) {
		for _, d := range list {
			if d.Name != "skip" && d.Name != "include" {
				continue
			}
			if on := d.Arguments.ForName("if"); on != nil && on.Value.Kind == ast.Variable {
				names = append(names, on.Value.Raw)
			}
		}
	}
	var walk func(ast.SelectionSet)
	walk = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				directives(s.Directives)
				walk(s.SelectionSet)
			case *ast.InlineFragment:
				directives(s.Directives)
				walk(s.SelectionSet)
			case *ast.FragmentSpread:
				directives(s.Directives)
				if f := doc.Fragments.ForName(s.Name); f != nil && !seen[s.Name] {
					seen[s.Name] = true
					walk(f.SelectionSet)
				}
			}
		}
	}
	walk(op.SelectionSet)
	slices.Sort(names)
	return slices.Compact(names)
}
