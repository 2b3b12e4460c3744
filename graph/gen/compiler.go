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
	compiledPackage = "oddsgraph/graph/compiled"
	graphqlPackage  = "github.com/99designs/gqlgen/graphql"
)

// compiler is a plugin of gqlgen. For every type that a query reaches it writes a function that appends the selected fields
// of an object to a response, each from what gqlgen has bound it to: a resolver, a method or a field of Go. What it does not
// know how to write it leaves out, so that documents with it are executed by gqlgen.
type compiler struct{ filename string }

// Name implements plugin.Plugin.
func (*compiler) Name() string { return "compiled" }

// MutateConfig removes what was written before, which need not fit the schema any more.
func (c *compiler) MutateConfig(*config.Config) error {
	if err := os.Remove(c.filename); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// GenerateCode implements plugin.CodeGenerator.
func (c *compiler) GenerateCode(data *codegen.Data) error {
	if len(data.AllDirectives.LocationDirectives("FIELD")) > 0 {
		return errors.New("compiled selections would pass over the directives on fields of a document")
	}
	return templates.Render(templates.Options{
		PackageName: data.Config.Exec.Package, Filename: c.filename, GeneratedHeader: true, Packages: data.Config.Packages,
		PruneOptions: data.Config.GetPruneOptions(), Data: &file{data: data}, Template: "{{ .Source }}",
	})
}

// file is the code that is being written.
type file struct {
	data *codegen.Data
	out  strings.Builder
}

func (f *file) line(format string, args ...any) { fmt.Fprintf(&f.out, format+"\n", args...) }

// lookup returns how a package is called in the file.
func lookup(path string) string { return templates.CurrentImports.Lookup(path) }

// typeOf returns how a type is called in the file.
func typeOf(t types.Type) string { return templates.CurrentImports.LookupType(t) }

// Source returns the code behind the imports. Rendering calls it, since names of packages are known only then.
func (f *file) Source() string {
	objects, interfaces := f.reached()
	f.compiler(objects, interfaces)
	for _, o := range objects {
		f.object(o)
	}
	for _, i := range interfaces {
		f.abstract(i)
	}
	return f.out.String()
}

// reached returns the types that a query can reach, in the order of their names.
func (f *file) reached() (objects []*codegen.Object, interfaces []*codegen.Interface) {
	seen := map[string]bool{}
	var reach func(name string)
	reach = func(name string) {
		if seen[name] || strings.HasPrefix(name, "__") {
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
	slices.SortFunc(objects, func(a, b *codegen.Object) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(interfaces, func(a, b *codegen.Interface) int { return cmp.Compare(a.Name, b.Name) })
	return objects, interfaces
}

// possible returns the names of the types that an interface or union may be, in the order in which selections on them are.
func possible(i *codegen.Interface) []string {
	var names []string
	for _, p := range i.Implementors {
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// fields returns the fields of an object that can be written, in the order of the schema.
func (f *file) fields(o *codegen.Object) []*codegen.Field {
	var out []*codegen.Field
	for _, field := range o.Fields {
		if f.reads(field) && f.writes(field.TypeReference) {
			out = append(out, field)
		}
	}
	return out
}

// reads reports whether the value of a field can be had.
func (f *file) reads(field *codegen.Field) bool {
	if field.IsReserved() || field.IsBatch() || field.HasHaser || field.VOkFunc || field.IsMap() || field.HasDirectives() {
		return false
	}
	for _, a := range field.Args {
		if i, ok := types.Unalias(a.TypeReference.GO).(*types.Interface); ok && i.Empty() {
			return false
		}
	}
	return codegen.GetInlineArgsMetadata(field.Object.Name, field.Name) == nil
}

// writes reports whether a value of a type can be written.
func (f *file) writes(ref *config.TypeReference) bool {
	switch {
	case ref.IsPtrToSlice(), ref.IsPtrToIntf(), ref.IsSlice():
		return f.writes(ref.Elem())
	case ref.IsPtrToPtr(), ref.IsContext, ref.IsRoot, ref.HasEnumValues():
		return false
	case ref.IsMarshaler, ref.Marshaler != nil, f.data.Interfaces[ref.Definition.Name] != nil:
		return true
	default:
		return ref.Definition.Kind == ast.Object && !ref.IsMap()
	}
}

// listsStrings reports whether a type is a list of strings that is decoded one like the other. gqlgen does so at three
// allocations each.
func listsStrings(ref *config.TypeReference) bool {
	if !ref.IsSlice() || ref.GQL.Elem.Elem != nil || !types.Identical(ref.GO, types.NewSlice(types.Typ[types.String])) || ref.Unmarshaler == nil {
		return false
	}
	return ref.Unmarshaler.Name() == "UnmarshalString" || ref.Unmarshaler.Name() == "UnmarshalID"
}

// argument returns the case that decodes one argument, "" if that takes more than a function of its value.
func argument(a *codegen.FieldArgument) string {
	ref := a.TypeReference
	if len(a.Directives) > 0 {
		return ""
	}
	if listsStrings(ref) {
		return fmt.Sprintf("case %q:\nlist, ok := %s.Strings(value)\na.%s = list\nreturn ok\n", a.Name, lookup(compiledPackage), a.VarName)
	}
	if ref.Unmarshaler == nil || ref.IsContext || ref.CastType != nil || ref.IsSlice() {
		return ""
	}
	decode, ok := ref.Unmarshaler.Pkg().Scope().Lookup(ref.Unmarshaler.Name()).(*types.Func)
	if !ok {
		return ""
	}
	parameters, results := decode.Signature().Params(), decode.Signature().Results()
	if parameters.Len() != 1 || results.Len() != 2 {
		return "" // it wants a context
	}
	decoded, value := results.At(0).Type(), ""
	switch {
	case types.Identical(ref.GO, decoded):
		value = "v"
	case types.Identical(ref.GO, types.NewPointer(decoded)):
		value = "&v"
	default:
		return ""
	}
	return fmt.Sprintf("case %q:\nv, err := %s(value)\na.%s = %s\nreturn err == nil\n", a.Name, templates.Call(ref.Unmarshaler), a.VarName, value)
}

// argumentsType is the name of the type of a field's decoded arguments.
func argumentsType(field *codegen.Field) string {
	return "argumentsOf" + field.Object.Name + templates.UcFirst(field.Name)
}

func resolverField(o *codegen.Object) string { return templates.LcFirst(o.Name) }

// compiler writes the constructor with the table of fields, and the types that everything else hangs on.
func (f *file) compiler(objects []*codegen.Object, interfaces []*codegen.Interface) {
	compiled, resolvers := lookup(compiledPackage), []*codegen.Object{}
	for _, o := range objects {
		if o.HasResolvers() {
			resolvers = append(resolvers, o)
		}
	}
	f.line("// NewCompiler returns a compiler of queries, whose resolvers must not wait.")
	f.line("func NewCompiler(cfg Config) *%s.Compiler {", compiled)
	f.line("e := &executableSchema{SchemaData: cfg.Schema, Resolvers: cfg.Resolvers, Directives: cfg.Directives, ComplexityRoot: cfg.Complexity}")
	f.line("ec := newExecutionContext(&%s.OperationContext{}, e, nil)", lookup(graphqlPackage))
	f.line("g := &compiledGraph{")
	for _, o := range resolvers {
		f.line("%s: cfg.Resolvers.%s(),", resolverField(o), templates.UcFirst(o.Name))
	}
	f.line("}")
	f.line("return %s.NewCompiler(e.Schema(), map[string]%s.Type{", compiled, compiled)
	for _, o := range objects {
		f.line("%q: {Fields: map[string]%s.FieldOf{", o.Name, compiled)
		for i, field := range f.fields(o) {
			if len(field.Args) == 0 {
				f.line("%q: {Number: %d},", field.Name, i+1)
				continue
			}
			f.line("%q: {Number: %d, Arguments: func(ctx %s.Context, raw map[string]any) (any, error) {", field.Name, i+1, lookup("context"))
			f.line("a, err := ec.%s(ctx, raw)", field.ArgsFunc())
			f.line("if err != nil { return nil, err }")
			f.line("return &%s{", argumentsType(field))
			for _, a := range field.Args {
				f.line("%s: a[%q].(%s),", a.VarName, a.Name, typeOf(a.TypeReference.GO))
			}
			f.line("}, nil\n},")
			var cases strings.Builder
			for _, a := range field.Args {
				cases.WriteString(argument(a))
			}
			if cases.Len() > 0 {
				f.line("New: func(x *%s.Execution) any { return %s.Make[%s](x) },", compiled, compiled, argumentsType(field))
				f.line("Set: func(to any, name string, value any) bool {\na := to.(*%s)\nswitch name {\n%s}\nreturn false\n},", argumentsType(field), &cases)
			}
			f.line("},")
		}
		f.line("}},")
	}
	for _, i := range interfaces {
		f.line("%q: {Possible: %#v},", i.Name, possible(i))
	}
	f.line("}, g.write%s)\n}\n", f.data.QueryRoot.Name)

	f.line("// compiledGraph writes what is selected of each type.\ntype compiledGraph struct {")
	for _, o := range resolvers {
		f.line("%s %sResolver", resolverField(o), templates.UcFirst(o.Name))
	}
	f.line("}\n")
	for _, o := range objects {
		for _, field := range f.fields(o) {
			if len(field.Args) == 0 {
				continue
			}
			f.line("type %s struct {", argumentsType(field))
			for _, a := range field.Args {
				f.line("%s %s", a.VarName, typeOf(a.TypeReference.GO))
			}
			f.line("}\n")
		}
	}
}

// object writes the function that writes an object.
func (f *file) object(o *codegen.Object) {
	compiled, receiver := lookup(compiledPackage), ""
	if !o.Root {
		receiver = ", obj " + typeOf(o.Reference())
	}
	f.line("func (g *compiledGraph) write%s(x *%s.Execution, s *%s.Selection%s) {", o.Name, compiled, compiled, receiver)
	f.line("for i := range s.Fields {")
	f.line("f := &s.Fields[i]")
	f.line("x.Buf = append(x.Buf, f.Key...)")
	f.line("switch f.Number {")
	f.line("case %s.Typename:\nx.Buf = append(x.Buf, `%q`...)", compiled, o.Name)
	for i, field := range f.fields(o) {
		f.line("case %d: // %s", i+1, field.Name)
		if f.keeps(field) {
			f.kept(field)
			continue
		}
		f.field(field)
	}
	f.line("}\nif x.Failed() { return }\n}")
	f.line("x.Close(s)\n}\n")
}

// keeps reports whether what a list is written as can be kept for others: it is a method's, its objects are written from their
// own fields of Go alone, and who has it has a method Written, whose result finds and keeps texts.
func (f *file) keeps(field *codegen.Field) bool {
	ref := field.TypeReference
	if !field.IsMethod() || !field.NoErr || field.MethodHasContext || len(field.Args) > 0 || !ref.IsSlice() || !ref.GQL.NonNull {
		return false
	}
	o := f.data.Objects.ByName(ref.Definition.Name)
	if o == nil || slices.ContainsFunc(o.Fields, func(field *codegen.Field) bool { return !field.IsVariable() }) {
		return false
	}
	m, _, _ := types.LookupFieldOrMethod(field.Object.Reference(), true, nil, "Written")
	_, ok := m.(*types.Func)
	return ok
}

// kept writes how a list is written for which keeps holds. Where its objects hold others the selection has no Text, by which
// nothing is found or kept.
func (f *file) kept(field *codegen.Field) {
	f.line("v, written, from := %[1]s.%[2]s(), %[1]s.Written(), len(x.Buf)", field.GoReceiverName, field.GoFieldName)
	f.line("if text := written.Find(v, f.Sub.Text); text != \"\" {\nx.Buf = append(x.Buf, text...)\ncontinue\n}")
	f.value(field.TypeReference, "v", 0)
	f.line("written.Keep(v, f.Sub.Text, x.Buf[from:])")
}

// field writes how a field is read and written.
func (f *file) field(field *codegen.Field) {
	var args []string
	if field.IsResolver {
		args = append(args, "x.Enter(f)")
		if !field.Object.Root {
			args = append(args, "obj")
		}
	} else if field.MethodHasContext {
		args = append(args, "x.Enter(f)")
	}
	if len(field.Args) > 0 {
		f.line("a, ok := x.Arguments(f).(*%s)", argumentsType(field))
		f.line("if !ok { x.Fail(); break }")
		for _, a := range field.Args {
			args = append(args, "a."+a.VarName)
		}
	}
	call := fmt.Sprintf("%s.%s(%s)", field.GoReceiverName, field.GoFieldName, strings.Join(args, ", "))
	switch {
	case field.IsResolver:
		call = fmt.Sprintf("g.%s.%s(%s)", resolverField(field.Object), field.GoFieldName, strings.Join(args, ", "))
		fallthrough
	case field.IsMethod() && !field.NoErr:
		f.line("v, err := %s", call)
		f.line("if err != nil { x.Fail(); break }")
	case field.IsMethod() && appends(field):
		f.line("x.Buf = append(obj.Append%s(append(x.Buf, '\"')), '\"')", field.GoFieldName)
		return
	case field.IsMethod():
		f.line("v := %s", call)
	default:
		f.value(field.TypeReference, field.GoReceiverName+"."+field.GoFieldName, 0)
		return
	}
	f.value(field.TypeReference, "v", 0)
}

// appends reports whether the text that a method returns can be had by one that appends it to a buffer, and is such that JSON
// needs no escapes for it.
func appends(field *codegen.Field) bool {
	m, _, _ := types.LookupFieldOrMethod(field.Object.Reference(), true, nil, "Append"+field.GoFieldName)
	method, ok := m.(*types.Func)
	return ok && len(field.Args) == 0 && field.TypeReference.Marshaler != nil && field.TypeReference.Marshaler.Name() == "MarshalID" &&
		appender(method.Type().(*types.Signature), nil)
}

// appender reports whether a signature is that of an append function: of a value, or of a method's own where that is nil.
func appender(s *types.Signature, value types.Type) bool {
	want := []types.Type{types.NewSlice(types.Typ[types.Byte])}
	if value != nil {
		want = append(want, value)
	}
	if s.Params().Len() != len(want) || s.Results().Len() != 1 || !types.Identical(s.Results().At(0).Type(), want[0]) {
		return false
	}
	for i, t := range want {
		if !types.Identical(s.Params().At(i).Type(), t) {
			return false
		}
	}
	return true
}

// value writes how a value is written. It follows gqlgen's type.gotpl case by case.
func (f *file) value(ref *config.TypeReference, v string, depth int) {
	end := ""
	if ref.IsPtrToSlice() || ref.IsPtrToIntf() || ref.IsNilable() && (!ref.IsSlice() || !ref.GQL.NonNull) {
		null := "x.Null()"
		if ref.GQL.NonNull {
			null = "x.Fail()\nreturn"
		}
		f.line("if %s == nil {\n%s\n} else {", v, null)
		end = "}"
	}
	switch {
	case ref.IsPtrToSlice(), ref.IsPtrToIntf():
		f.value(ref.Elem(), "(*"+v+")", depth)
	case ref.IsSlice():
		i := fmt.Sprintf("i%d", depth)
		f.line("x.Buf = append(x.Buf, '[')")
		f.line("for %s := range %s {", i, v)
		f.line("if %s > 0 { x.Buf = append(x.Buf, ',') }", i)
		f.value(ref.Elem(), v+"["+i+"]", depth+1)
		f.line("if x.Failed() { return }")
		f.line("}\nx.Buf = append(x.Buf, ']')")
	case ref.IsMarshaler:
		f.line("x.Marshal(%s, %t)", v, ref.GQL.NonNull)
	case ref.Marshaler != nil:
		f.scalar(ref, v)
	case f.data.Interfaces[ref.Definition.Name] != nil:
		f.line("g.write%s(x, f.Of, %s)", ref.Definition.Name, v)
	case ref.IsNilable():
		f.line("g.write%s(x, f.Sub, %s)", ref.Definition.Name, v)
	default:
		f.line("g.write%s(x, f.Sub, &%s)", ref.Definition.Name, v)
	}
	if end != "" {
		f.line("%s", end)
	}
}

// known are append functions of package compiled that write what functions of gqlgen do.
var known = map[string]string{"MarshalString": "AppendString", "MarshalID": "AppendString", "MarshalInt": "AppendInt", "MarshalBoolean": "AppendBoolean"}

// scalar writes how a value is written that has a marshaling function: by the append function for the same type, else by
// itself. The append function of scalar.MarshalX is scalar.AppendX.
func (f *file) scalar(ref *config.TypeReference, v string) {
	switch {
	case ref.IsTargetNilable() && !ref.IsNilable():
		v = "&" + v
	case !ref.IsTargetNilable() && ref.IsNilable():
		v = "*" + v
	}
	if ref.CastType != nil {
		v = fmt.Sprintf("%s(%s)", typeOf(ref.CastType), v)
	}
	m := ref.Marshaler
	pkg := m.Pkg()
	if name := known[m.Name()]; name != "" && pkg.Path() == graphqlPackage {
		f.line("x.Buf = %s.%s(x.Buf, %s)", lookup(compiledPackage), name, v)
		return
	}
	name := "Append" + strings.TrimPrefix(m.Name(), "Marshal")
	value := m.Type().(*types.Signature).Params().At(0).Type()
	if a, ok := pkg.Scope().Lookup(name).(*types.Func); ok && appender(a.Type().(*types.Signature), value) {
		f.line("x.Buf = %s.%s(x.Buf, %s)", lookup(pkg.Path()), name, v)
		return
	}
	f.line("x.Marshal(%s(%s), %t)", templates.Call(m), v, ref.GQL.NonNull)
}

// abstract writes the function that writes an object of an interface or union type.
func (f *file) abstract(i *codegen.Interface) {
	compiled, names := lookup(compiledPackage), possible(i)
	f.line("func (g *compiledGraph) write%s(x *%s.Execution, of []*%s.Selection, obj %s) {", i.Name, compiled, compiled, typeOf(i.Type))
	f.line("switch obj := obj.(type) {")
	for _, p := range i.Implementors {
		f.line("case %s:", typeOf(p.Type))
		ref := "obj"
		if p.TakeRef {
			ref = "&obj"
		}
		if p.CanBeNil() {
			f.line("if obj == nil { x.Fail(); return }")
		}
		f.line("g.write%s(x, of[%d], %s)", p.Name, slices.Index(names, p.Name), ref)
	}
	f.line("default:\nx.Fail()\n}\n}\n")
}
