package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/vektah/gqlparser/v2/ast"
)

const (
	execPackage    = "oddsgraph/graph/exec"
	graphqlPackage = "github.com/99designs/gqlgen/graphql"
)

// compiler is a gqlgen plugin that generates the executor. For every type that a query or an event can reach, it generates a
// function that appends the selected fields of an object to a response. The generated function gets the value of a field from the
// field's gqlgen binding: a resolver, a Go method or a Go field.
type compiler struct{ filename string }

func (*compiler) Name() string { return "executor" }

// MutateConfig removes the executor that the previous run generated, because this code may not compile with the new schema.
func (c *compiler) MutateConfig(*config.Config) error {
	if err := os.Remove(c.filename); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (c *compiler) GenerateCode(data *codegen.Data) error {
	if len(data.AllDirectives.LocationDirectives("FIELD")) > 0 {
		return errors.New("the executor does not support directives on fields of a document")
	}
	f := &file{data: data}
	if err := f.check(); err != nil {
		return err
	}
	return templates.Render(templates.Options{
		PackageName: data.Config.Exec.Package, Filename: c.filename, GeneratedHeader: true, Packages: data.Config.Packages,
		PruneOptions: data.Config.GetPruneOptions(), Data: f, Template: "{{ .Source }}",
	})
}

type file struct {
	data *codegen.Data
	out  strings.Builder
}

func (f *file) line(format string, args ...any) { fmt.Fprintf(&f.out, format+"\n", args...) }

// lookup returns the name by which the generated file imports a package.
func lookup(path string) string { return templates.CurrentImports.Lookup(path) }

// typeOf returns a Go type as the generated file spells it.
func typeOf(t types.Type) string { return templates.CurrentImports.LookupType(t) }

// Source returns the generated code without the imports. The template calls it, because lookup and typeOf work only while the
// template is rendered.
func (f *file) Source() string {
	objects, interfaces := f.reachableTypes()
	f.compiler(objects, interfaces)
	for _, o := range objects {
		if o.Stream {
			f.stream(o)
		} else {
			f.object(o)
		}
	}
	for _, i := range interfaces {
		f.abstract(i)
	}
	return f.out.String()
}

func (f *file) reachableTypes() (objects []*codegen.Object, interfaces []*codegen.Interface) {
	seen := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if i := f.data.Interfaces[name]; i != nil {
			interfaces = append(interfaces, i)
			for _, possible := range i.Implementors {
				reach(possible.Name)
			}
		}
		if o := f.data.Objects.ByName(name); o != nil && o.Name == name {
			objects = append(objects, o)
			for _, field := range o.Fields {
				reach(field.TypeReference.Definition.Name)
			}
		}
	}
	reach(f.data.QueryRoot.Name)
	if f.data.SubscriptionRoot != nil {
		reach(f.data.SubscriptionRoot.Name)
	}
	slices.SortFunc(objects, func(a, b *codegen.Object) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(interfaces, func(a, b *codegen.Interface) int { return cmp.Compare(a.Name, b.Name) })
	return objects, interfaces
}

// check returns an error if the executor does not support the binding of a field.
func (f *file) check() error {
	objects, _ := f.reachableTypes()
	for _, o := range objects {
		for _, field := range o.Fields {
			if !f.canRead(field) || !f.canWrite(field.TypeReference) {
				return fmt.Errorf("the executor does not support the binding of %s.%s", o.Name, field.Name)
			}
		}
	}
	return nil
}

// possibleNames returns the names of the possible types of an interface or union, in the order of exec.Field.Of.
func possibleNames(i *codegen.Interface) []string {
	var names []string
	for _, p := range i.Implementors {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (f *file) canRead(field *codegen.Field) bool {
	return !field.IsBatch() && !field.IsMap() && !field.HasDirectives() && codegen.GetInlineArgsMetadata(field.Object.Name, field.Name) == nil
}

func (f *file) canWrite(ref *config.TypeReference) bool {
	switch {
	case ref.IsPtrToSlice(), ref.IsPtrToIntf(), ref.IsSlice():
		return f.canWrite(ref.Elem())
	case ref.IsPtrToPtr(), ref.IsRoot:
		return false
	case ref.IsMarshaler, ref.Marshaler != nil, f.data.Interfaces[ref.Definition.Name] != nil:
		return true
	default:
		return ref.Definition.Kind == ast.Object && !ref.IsMap()
	}
}

// isField reports whether a GraphQL field is bound to a field of a Go struct. The code that reads such a field calls no function.
func isField(field *codegen.Field) bool { return field.IsVariable() && !field.IsResolver }

// isComposite reports whether a type is an object, interface or union type, or a list of such a type.
func isComposite(ref *config.TypeReference) bool {
	return ref.Definition.Kind == ast.Object || ref.Definition.Kind == ast.Interface || ref.Definition.Kind == ast.Union
}
func resolverField(o *codegen.Object) string { return templates.LcFirst(o.Name) }

// compiler generates the constructor with the table of fields, the type of the executor, and the types of arguments.
func (f *file) compiler(objects []*codegen.Object, interfaces []*codegen.Interface) {
	resolvers := slices.DeleteFunc(slices.Clone(objects), func(o *codegen.Object) bool { return !o.HasResolvers() })
	exec := lookup(execPackage)
	f.line("// NewCompiler returns a compiler for the schema's operations. Resolvers must not wait.")
	f.line("func NewCompiler(cfg Config) *%s.Compiler {", exec)
	f.line("e := &executableSchema{SchemaData: cfg.Schema, Resolvers: cfg.Resolvers, Directives: cfg.Directives, ComplexityRoot: cfg.Complexity}")
	f.line("ec := newExecutionContext(&%s.OperationContext{}, e, nil)", lookup(graphqlPackage))
	f.line("g := &executor{")
	f.line("ec: ec,")
	for _, o := range resolvers {
		f.line("%s: cfg.Resolvers.%s(),", resolverField(o), templates.UcFirst(o.Name))
	}
	f.line("}")
	f.line("return %s.NewCompiler(e.Schema(), map[string]%s.Type{", exec, exec)
	for _, o := range objects {
		f.line("%q: {Fields: map[string]%s.FieldOf{", o.Name, exec)
		for i, field := range o.Fields {
			f.entry(i+1, field)
		}
		f.line("}},")
	}
	for _, i := range interfaces {
		f.line("%q: {Possible: %#v},", i.Name, possibleNames(i))
	}
	subscribe := "nil"
	if f.data.SubscriptionRoot != nil {
		subscribe = "g.stream" + f.data.SubscriptionRoot.Name
	}
	f.line("}, g.write%s, %s)\n}\n", f.data.QueryRoot.Name, subscribe)

	f.line("// executor writes the selected fields of each type.\ntype executor struct {")
	f.line("ec *executionContext")
	for _, o := range resolvers {
		f.line("%s %sResolver", resolverField(o), templates.UcFirst(o.Name))
	}
	f.line("}\n")
	for _, o := range objects {
		for _, field := range o.Fields {
			f.argumentsType(field)
		}
	}
}

// object generates the functions that write an object. The first function writes the whole object and returns false if the object
// is null. The second function writes the fields. If the code of a field panics, the second function returns early, and the first
// function calls it again. Reading a Go field does not panic, so an object with only Go fields needs no second function.
func (f *file) object(o *codegen.Object) {
	exec, receiver, object := lookup(execPackage), "", ""
	if !o.Root {
		receiver, object = ", obj "+typeOf(o.Reference()), ", obj"
	}
	calls := slices.ContainsFunc(o.Fields, func(field *codegen.Field) bool { return !isField(field) })
	f.line("func (g *executor) write%s(x *%s.Execution, s *%s.Selection%s) bool {", o.Name, exec, exec, receiver)
	f.line("o := x.Open()")
	if calls {
		f.line("for o.Next < len(s.Fields) {\ng.writeFieldsOf%s(x, s, &o%s)\n}", o.Name, object)
		f.line("return x.Close(s, &o)\n}\n")
		f.line("func (g *executor) writeFieldsOf%s(x *%s.Execution, s *%s.Selection, o *%[2]s.Object%[4]s) {", o.Name, exec, exec, receiver)
		f.line("defer x.Recover(s, o)")
	}
	f.line("for ; o.Next < len(s.Fields); o.Next++ {")
	f.line("f := &s.Fields[o.Next]")
	f.line("if len(x.Buf) > x.Limit && x.Full(f) {\no.Stop(s)\nbreak\n}")
	if calls {
		f.line("x.Field(o, f)")
	} else {
		f.line("x.Buf = append(x.Buf, f.Key...)")
	}
	f.line("switch f.Number {")
	f.line("case %s.Typename:\nx.Buf = append(x.Buf, `%q`...)", exec, o.Name)
	for i, field := range o.Fields {
		f.line("case %d: // %s", i+1, field.Name)
		f.field(field)
	}
	f.line("}\n}")
	if !calls {
		f.line("return x.Close(s, &o)")
	}
	f.line("}\n")
}

func (f *file) stream(o *codegen.Object) {
	exec := lookup(execPackage)
	f.line("func (g *executor) stream%s(x *%s.Execution, f *%s.Field) %s.Events {", o.Name, exec, exec, exec)
	f.line("switch f.Number {")
	for i, field := range o.Fields {
		f.line("case %d: // %s", i+1, field.Name)
		args := f.arguments(field, "x.Start(f)", "return nil")
		f.line("events, err := g.%s.%s(%s)", resolverField(o), field.GoFieldName, strings.Join(args, ", "))
		f.line("if err != nil {\nx.Error(f, err)\nreturn nil\n}")
		f.line("return %s.EventsOf(events, func(x *%s.Execution, f *%s.Field, v %s) bool {", exec, exec, exec, typeOf(field.TypeReference.GO))
		f.value(field.TypeReference, "v", 0, "x.Missing(f)\nreturn false")
		f.line("return true\n})")
	}
	f.line("}\nreturn nil\n}\n")
}

// invalid is the generated code that runs if a non-null field is null.
const invalid = "x.Missing(f)\no.Nullify()"

func (f *file) field(field *codegen.Field) {
	null := "x.Null()"
	if field.TypeReference.GQL.NonNull {
		null = "o.Nullify()"
	}
	receiver := field.GoReceiverName
	switch {
	case field.IsResolver:
		receiver = "g." + resolverField(field.Object)
	case receiver == "ec":
		receiver = "g.ec"
	}
	args := f.arguments(field, "x.Enter(f)", null+"\nbreak")
	f.kindCheck(field)
	if field.HasHaser {
		f.line("if !%s.%s() {\n%s\nbreak\n}", receiver, field.HaserMethodName, null)
	}
	call := fmt.Sprintf("%s.%s(%s)", receiver, field.GoFieldName, strings.Join(args, ", "))
	switch {
	case isField(field):
		f.value(field.TypeReference, receiver+"."+field.GoFieldName, 0, invalid)
		return
	case field.VOkFunc:
		f.line("v, ok := %s", call)
		f.line("if !ok {\n%s\nbreak\n}", null)
	case field.IsResolver, !field.NoErr:
		f.line("v, err := %s", call)
		f.line("if err != nil {\nx.Error(f, err)\n%s\nbreak\n}", null)
	case hasAppendMethod(field):
		f.line("x.Buf = append(obj.Append%s(x.OpenID()), '\"')", field.GoFieldName)
		return
	default:
		f.line("v := %s", call)
	}
	f.value(field.TypeReference, "v", 0, invalid)
}
