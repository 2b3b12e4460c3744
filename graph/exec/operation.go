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

const maxVariants = 16

// Operation is a validated operation. The selected fields depend on the variables in @skip and @include. So an operation is
// compiled once for each combination of the values of these variables. An Operation keeps its document in memory. It is safe for
// concurrent use.
type Operation struct {
	compiler   *Compiler
	document   *ast.QueryDocument
	definition *ast.OperationDefinition
	// onGrow is called with the size in bytes of each variant that is stored.
	onGrow func(bytes int)
	// conditions contains the names of the variables in @skip and @include, sorted.
	conditions []string
	// size is the size in bytes of the data of the last response that was not too large.
	size atomic.Int64

	// variants contains the compiled variants. Its keys are the values of the conditions, as strings of 0 and 1. A writer holds mu and
	// replaces the map. Readers need no lock.
	mu       sync.Mutex
	variants atomic.Pointer[map[string]*variant]
}

// variant is an operation that is compiled for one combination of values of its conditions.
type variant struct {
	root *Selection
	// slots is the length of Execution.arguments. bytes is the approximate size of the variant in memory.
	slots, bytes int
}

// Operation returns an operation of a document. The operation is compiled on first use. It calls onGrow with the approximate size
// in bytes of each compiled variant that it stores, so that a cache of documents can count the memory of the operation. onGrow must
// not execute the operation.
func (c *Compiler) Operation(doc *ast.QueryDocument, op *ast.OperationDefinition, onGrow func(bytes int)) *Operation {
	return &Operation{compiler: c, document: doc, definition: op, onGrow: onGrow, conditions: conditionsOf(doc, op)}
}

// Execute runs one pass over a query. It returns buf with the data of the response appended. The variables must be coerced and
// include defaults. The context of the resolvers is an Execution. data is nil if the operation cannot run with these variables.
// limiter limits the total size of data and errors. If limiter is nil, there is no limit. If the response needs more than limiter
// allows, Execute appends null to buf and returns only the error of limiter.
func (o *Operation) Execute(ctx context.Context, variables map[string]any, buf []byte, limiter SizeLimiter) (data []byte, errs []Error) {
	v, err := o.variant(variables)
	if err != nil {
		return nil, []Error{{Err: err}}
	}
	return o.run(ctx, variables, buf, limiter, v, func(x *Execution) bool { return o.compiler.query(x, v.root) })
}

// run runs one pass. It calls write to write the root object. write returns false if the object is null.
func (o *Operation) run(ctx context.Context, variables map[string]any, buf []byte, limiter SizeLimiter, v *variant, write func(x *Execution) bool) (data []byte, errs []Error) {
	x := executions.Get().(*Execution)
	x.Context, x.Buf, x.variables, x.idPrefix = ctx, buf, variables, o.compiler.idPrefix
	if size := x.setLimiter(limiter, int(o.size.Load())); cap(buf)-len(buf) < size || cap(buf) == 0 {
		x.Buf = slices.Grow(buf, size+size/8+64) // results of an operation have similar sizes
	}
	x.arguments = slices.Grow(x.arguments, v.slots)[:v.slots]
	if !write(x) {
		x.Null()
	}
	if last := len(v.root.Fields) - 1; last >= 0 && len(x.Buf) > x.Limit {
		x.Full(&v.root.Fields[last]) // generated code checks the limit before each field, but not after the last one
	}
	data = x.Buf
	full := x.full
	if full {
		data = append(data[:len(buf)], "null"...)
	}
	if len(x.errs) > 0 {
		errs = slices.Clone(x.errs)
	}
	x.release() // not deferred, because other code may still use x after a panic
	if !full {
		o.size.Store(int64(len(data) - len(buf)))
	}
	return data, errs
}

func (o *Operation) variant(variables map[string]any) (*variant, error) {
	var bits [16]byte
	key := bits[:0]
	for _, name := range o.conditions {
		value, ok := variables[name].(bool)
		if !ok {
			return nil, gqlerror.Errorf("variable $%s is null; @skip and @include need true or false", name)
		}
		bit := byte('0')
		if value {
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

// compile compiles the variant for a key of the map variants. It does not store the variant if the map already has maxVariants
// variants.
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
	values := make(map[string]any, len(o.conditions))
	for i, name := range o.conditions {
		values[name] = key[i] == '1'
	}
	v, err := compileOperation(o.compiler, o.document, o.definition, values)
	if err != nil || len(variants) == maxVariants {
		return v, err
	}
	variants[key] = v
	o.variants.Store(&variants)
	o.onGrow(v.bytes)
	return v, nil
}

// Compile compiles the operation for the given variables before Execute or Subscribe. It returns 0 if the operation stores the
// compiled variant. An operation that already stores maxVariants variants does not store another one. In this case, Compile returns
// the approximate size of the variant in bytes, because a Stream keeps this variant in memory.
func (o *Operation) Compile(variables map[string]any) (size int, err error) {
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

// conditionsOf returns the sorted names of the variables in @skip and @include of all selections that the operation uses.
func conditionsOf(doc *ast.QueryDocument, op *ast.OperationDefinition) []string {
	var names []string
	seen := map[string]bool{}
	directives := func(list ast.DirectiveList) {
		for _, d := range list {
			if d.Name != "skip" && d.Name != "include" {
				continue
			}
			if condition := d.Arguments.ForName("if"); condition != nil && condition.Value.Kind == ast.Variable {
				names = append(names, condition.Value.Raw)
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
