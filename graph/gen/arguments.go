package main

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
)

// listsStrings reports whether a type is a list of strings that exec.Strings can decode. exec.Strings is faster than gqlgen's
// decoder, which needs three allocations for each string.
func listsStrings(ref *config.TypeReference) bool {
	if !ref.IsSlice() || ref.GQL.Elem.Elem != nil || !types.Identical(ref.GO, types.NewSlice(types.Typ[types.String])) || ref.Unmarshaler == nil {
		return false
	}
	return ref.Unmarshaler.Name() == "UnmarshalString" || ref.Unmarshaler.Name() == "UnmarshalID"
}

// argument returns the case clause of exec.FieldOf.Set that decodes one argument. It returns "" if only gqlgen's code can decode
// the argument, for example because the decoder needs a context.
func argument(a *codegen.FieldArgument) string {
	ref := a.TypeReference
	if len(a.ImplDirectives()) > 0 {
		return ""
	}
	if listsStrings(ref) {
		return fmt.Sprintf("case %q:\nlist, ok := %s.Strings(value)\na.%s = list\nreturn ok\n", a.Name, lookup(execPackage), a.VarName)
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
		return "" // the decoder needs a context
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

// argumentsName returns the name of the Go type that contains a field's decoded arguments.
func argumentsName(field *codegen.Field) string {
	return "argumentsOf" + field.Object.Name + templates.UcFirst(field.Name)
}

// entry generates the exec.FieldOf of a field: its number and the functions that decode its arguments.
func (f *file) entry(number int, field *codegen.Field) {
	if len(field.Args) == 0 {
		f.line("%q: {Number: %d},", field.Name, number)
		return
	}
	exec, name := lookup(execPackage), argumentsName(field)
	f.line("%q: {Number: %d, Arguments: func(ctx %s.Context, raw map[string]any) (any, error) {", field.Name, number, lookup("context"))
	f.line("a, err := ec.%s(ctx, raw)", field.ArgsFunc())
	f.line("if err != nil { return nil, err }")
	f.line("return &%s{", name)
	var cases strings.Builder
	for _, a := range field.Args {
		cases.WriteString(argument(a))
		if types.IsInterface(a.TypeReference.GO) {
			f.line("%s: a[%q],", a.VarName, a.Name)
			continue
		}
		f.line("%s: a[%q].(%s),", a.VarName, a.Name, typeOf(a.TypeReference.GO))
	}
	f.line("}, nil\n},")
	if cases.Len() > 0 {
		f.line("New: func(x *%s.Execution) any { return %s.Make[%s](x) },", exec, exec, name)
		f.line("Set: func(to any, name string, value any) bool {\na := to.(*%s)\nswitch name {\n%s}\nreturn false\n},", name, &cases)
	}
	f.line("},")
}

// argumentsType generates the Go type that contains a field's decoded arguments. It generates nothing if the field has no
// arguments.
func (f *file) argumentsType(field *codegen.Field) {
	if len(field.Args) == 0 {
		return
	}
	f.line("type %s struct {", argumentsName(field))
	for _, a := range field.Args {
		f.line("%s %s", a.VarName, typeOf(a.TypeReference.GO))
	}
	f.line("}\n")
}

// arguments generates the code that decodes the arguments of a field. It returns the arguments of the Go call that reads the field.
// The parameter ctx is the Go expression of the context. The parameter refused is the generated code that runs if the arguments are
// invalid.
func (f *file) arguments(field *codegen.Field, ctx, refused string) (args []string) {
	if field.IsResolver || field.MethodHasContext {
		args = append(args, ctx)
	}
	if field.IsResolver && !field.Object.Root {
		args = append(args, "obj")
	}
	switch {
	case len(field.Args) == 0:
	case isField(field):
		f.line("if x.Arguments(f) == nil {\n%s\n}", refused)
	default:
		f.line("a, ok := x.Arguments(f).(*%s)", argumentsName(field))
		f.line("if !ok {\n%s\n}", refused)
		for _, a := range field.Args {
			args = append(args, "a."+a.VarName)
		}
	}
	return args
}
