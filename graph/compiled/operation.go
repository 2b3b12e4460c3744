package compiled

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/ast"
)

const (
	// maxSwitches is the number of variables that an operation's @skip and @include may depend on.
	maxSwitches = 8
	// maxVariants is how many combinations of their values are compiled. Others are not.
	maxVariants = 16
)

// Operation is an operation of a document that was found valid. Which fields it has, and in which order, depends on the
// variables in @skip and @include, so it is compiled for each combination of their values that comes. It is safe for
// concurrent use, keeps the document, and is to be kept beside it.
type Operation struct {
	compiler   *Compiler
	document   *ast.QueryDocument
	definition *ast.OperationDefinition
	// grown is told how many bytes were compiled.
	grown func(bytes int)
	// switches are the variables that fields depend on, sorted; tooMany where they are more than are looked at.
	switches []string
	tooMany  bool
	// size is that of the last result.
	size atomic.Int64

	// variants are compiled under mu and read without it. A map does not change any more.
	mu       sync.Mutex
	variants atomic.Pointer[map[uint]*variant]
}

// variant is an operation compiled for some values of its switches.
type variant struct {
	// root is nil where the operation can't be compiled.
	root *Selection
	// slots counts the fields whose arguments hold variables, bytes is about what the variant takes.
	slots, bytes int
}

// Operation returns an operation of a document. It is compiled when it is executed; grown is told then how many bytes that
// takes, so that they can be bounded together with the document. It must not execute the operation.
func (c *Compiler) Operation(doc *ast.QueryDocument, op *ast.OperationDefinition, grown func(bytes int)) *Operation {
	o := &Operation{compiler: c, document: doc, definition: op, grown: grown}
	if op.Operation == ast.Query {
		o.switches = switchesOf(doc, op)
	}
	o.tooMany = len(o.switches) > maxSwitches
	return o
}

// Execute answers the operation with what is in memory: it appends to buf what gqlgen would write as data. variables are
// those of the operation, coerced and with defaults. The execution has no result, and ok is false, where the operation can't
// be compiled or anything goes wrong in it. Resolvers get an Execution as their context.
func (o *Operation) Execute(ctx context.Context, variables map[string]any, buf []byte) (data []byte, ok bool) {
	data, ok, _ = o.run(ctx, variables, buf, false)
	return data, ok
}

// Attempt is Execute where resolvers fail only since what they read is not there yet. It goes on when something fails, with what
// does not hang on that, so that all resolvers whose turn it is have said what they read. Where again is false another attempt has
// no result either.
func (o *Operation) Attempt(ctx context.Context, variables map[string]any, buf []byte) (data []byte, ok, again bool) {
	return o.run(ctx, variables, buf, true)
}

func (o *Operation) run(ctx context.Context, variables map[string]any, buf []byte, patient bool) (data []byte, ok, able bool) {
	defer func() {
		if recover() != nil { // gqlgen will come to it, too
			data, ok, able = buf, false, false
		}
	}()
	v := o.variant(variables)
	if v == nil || v.root == nil {
		return buf, false, false
	}
	if size := int(o.size.Load()); cap(buf)-len(buf) < size || cap(buf) == 0 {
		buf = slices.Grow(buf, size+size/8+64) // a buffer that was good for the last result may be good for this one
	}
	x := executions.Get().(*Execution)
	x.Context, x.Buf, x.variables, x.patient = ctx, buf, variables, patient
	x.arguments = slices.Grow(x.arguments, v.slots)[:v.slots]
	o.compiler.query(x, v.root)
	data, ok = x.Buf, !x.failed
	x.release() // unless something panicked and may still hold it
	if !ok {
		return buf, false, true
	}
	o.size.Store(int64(len(data) - len(buf)))
	return data, true, true
}

// variant returns the operation as compiled for variables, or nil.
func (o *Operation) variant(variables map[string]any) *variant {
	if o.definition.Operation != ast.Query || o.tooMany {
		return nil
	}
	var key uint
	for i, name := range o.switches {
		on, ok := variables[name].(bool)
		if !ok {
			return nil
		}
		if on {
			key |= 1 << i
		}
	}
	if known := o.variants.Load(); known != nil {
		if v := (*known)[key]; v != nil {
			return v
		}
	}
	return o.compile(key)
}

// compile compiles the operation for a combination of its switches, unless it is one too many.
func (o *Operation) compile(key uint) *variant {
	o.mu.Lock()
	defer o.mu.Unlock()
	variants := map[uint]*variant{}
	if known := o.variants.Load(); known != nil {
		if v := (*known)[key]; v != nil {
			return v
		}
		if len(*known) == maxVariants {
			return nil
		}
		for k, v := range *known {
			variants[k] = v
		}
	}
	values := make(map[string]any, len(o.switches))
	for i, name := range o.switches {
		values[name] = key&(1<<i) != 0
	}
	v := compileOperation(o.compiler, o.document, o.definition, values)
	variants[key] = v
	o.variants.Store(&variants)
	o.grown(v.bytes)
	return v
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
