package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
)

// hasAppendMethod reports whether an ID field is bound to a method X of a Go type that also has a method AppendX. AppendX appends
// the result of X to a buffer. The result must contain no characters that JSON escapes.
func hasAppendMethod(field *codegen.Field) bool {
	m, _, _ := types.LookupFieldOrMethod(field.Object.Reference(), true, nil, "Append"+field.GoFieldName)
	method, ok := m.(*types.Func)
	return ok && len(field.Args) == 0 && field.TypeReference.Marshaler != nil && field.TypeReference.Marshaler.Name() == "MarshalID" &&
		isAppender(method.Type().(*types.Signature), nil)
}

// isAppender reports whether s is the signature of a function that appends a value to a byte slice. The parameter value is the type
// of this value. It is nil for a method, which appends a value of its receiver.
func isAppender(s *types.Signature, value types.Type) bool {
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

// value generates the code that writes a value. It has the same cases as gqlgen's type.gotpl. v is the Go expression of the value.
// invalid is the generated code that runs if a non-null value is null.
func (f *file) value(ref *config.TypeReference, v string, depth int, invalid string) {
	null := "x.Null()"
	if ref.GQL.NonNull {
		null = invalid
	}
	end := ""
	if ref.IsPtrToSlice() || ref.IsPtrToIntf() || ref.IsNilable() && (!ref.IsSlice() || !ref.GQL.NonNull) {
		f.line("if %s == nil {\n%s\n} else {", v, null)
		end = "}"
	}
	switch {
	case ref.IsPtrToSlice(), ref.IsPtrToIntf():
		f.value(ref.Elem(), "(*"+v+")", depth, invalid)
	case ref.IsSlice():
		f.list(ref, v, depth, null)
	case ref.IsMarshaler && ref.IsContext:
		f.line("if !x.Marshal(%s.WrapContextMarshaler(x, %s)) {\n%s\n}", lookup(graphqlPackage), v, null)
	case ref.IsMarshaler:
		f.line("if !x.Marshal(%s) {\n%s\n}", v, null)
	case ref.Marshaler != nil:
		f.scalar(ref, v, null)
	case f.data.Interfaces[ref.Definition.Name] != nil:
		f.line("if !g.write%s(x, f, %s) {\n%s\n}", ref.Definition.Name, v, null)
	case ref.IsNilable():
		f.line("if !g.write%s(x, f.Sub, %s) {\n%s\n}", ref.Definition.Name, v, null)
	default:
		f.line("if !g.write%s(x, f.Sub, &%s) {\n%s\n}", ref.Definition.Name, v, null)
	}
	if end != "" {
		f.line("%s", end)
	}
}

// list generates the code that writes a list. The parameter null is the generated code that replaces the list if an element of a
// non-null type is null.
func (f *file) list(ref *config.TypeReference, v string, depth int, null string) {
	i, from, whole := fmt.Sprintf("i%d", depth), fmt.Sprintf("from%d", depth), fmt.Sprintf("whole%d", depth)
	before := f.out.String()
	f.out.Reset()
	f.value(ref.Elem(), v+"["+i+"]", depth+1, "x.Missing(f)\n"+whole+" = false")
	element := f.out.String()
	f.out.Reset()
	f.out.WriteString(before)
	mayFail := strings.Contains(element, whole)
	if mayFail {
		f.line("%s, %s := len(x.Buf), true", from, whole)
	}
	f.line("x.Buf = append(x.Buf, '[')")
	if isComposite(ref) {
		f.line("x.Enlist()")
	}
	f.line("for %s := range %s {", i, v)
	f.line("if %s > 0 { x.Buf = append(x.Buf, ',') }", i)
	if isComposite(ref) {
		f.line("x.Element(%s)", i)
	}
	f.out.WriteString(element)
	f.line("}")
	if isComposite(ref) {
		f.line("x.Unlist()")
	}
	f.line("x.Buf = append(x.Buf, ']')")
	if mayFail {
		f.line("if !%s {\nx.Buf = x.Buf[:%s]\n%s\n}", whole, from, null)
	}
}

// appendFunctions maps gqlgen's marshaling functions to functions of package exec that append the same output.
var appendFunctions = map[string]string{"MarshalString": "AppendString", "MarshalInt": "AppendInt", "MarshalBoolean": "AppendBoolean"}

// scalar generates the code that writes a scalar. If the package of a marshaling function MarshalX has a function AppendX, the
// generated code calls AppendX. Otherwise it calls MarshalX.
func (f *file) scalar(ref *config.TypeReference, v, null string) {
	switch {
	case ref.IsTargetNilable() && !ref.IsNilable():
		v = "&" + v
	case !ref.IsTargetNilable() && ref.IsNilable():
		v = "*" + v
	}
	if ref.HasEnumValues() {
		v = fmt.Sprintf("%s[%s]", ref.EnumMarshalVar(f.data.Config.UseFunctionSyntaxForExecutionContext), v)
	} else if ref.CastType != nil {
		v = fmt.Sprintf("%s(%s)", typeOf(ref.CastType), v)
	}
	m := ref.Marshaler
	pkg := m.Pkg()
	if m.Name() == "MarshalID" && pkg.Path() == graphqlPackage {
		f.line("x.ID(%s)", v)
		return
	}
	if name := appendFunctions[m.Name()]; name != "" && pkg.Path() == graphqlPackage {
		f.line("x.Buf = %s.%s(x.Buf, %s)", lookup(execPackage), name, v)
		return
	}
	name := "Append" + strings.TrimPrefix(m.Name(), "Marshal")
	value := m.Type().(*types.Signature).Params().At(0).Type()
	if a, ok := pkg.Scope().Lookup(name).(*types.Func); ok && isAppender(a.Type().(*types.Signature), value) {
		f.line("x.Buf = %s.%s(x.Buf, %s)", lookup(pkg.Path()), name, v)
		return
	}
	marshaler := fmt.Sprintf("%s(%s)", templates.Call(m), v)
	if ref.IsContext {
		marshaler = fmt.Sprintf("%s.WrapContextMarshaler(x, %s)", lookup(graphqlPackage), marshaler)
	}
	f.line("if !x.Marshal(%s) {\n%s\n}", marshaler, null)
}

// abstract generates the function that writes a value of an interface or union type. The generated function returns false if the
// value is null.
func (f *file) abstract(i *codegen.Interface) {
	exec, names := lookup(execPackage), possibleNames(i)
	f.line("func (g *executor) write%s(x *%s.Execution, f *%s.Field, obj %s) bool {", i.Name, exec, exec, typeOf(i.Type))
	f.line("switch obj := obj.(type) {")
	for _, p := range i.Implementors {
		f.line("case %s:", typeOf(p.Type))
		ref := "obj"
		if p.TakeRef {
			ref = "&obj"
		}
		if p.CanBeNil() {
			f.line("if obj == nil { return false }")
		}
		f.line("return g.write%s(x, f.Of[%d], %s)", p.Name, slices.Index(names, p.Name), ref)
	}
	f.line("default:\npanic(%s.Errorf(\"unexpected type %%T for %s\", obj))\n}\n}\n", lookup("fmt"), i.Name)
}
