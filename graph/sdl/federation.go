package sdl

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// federationHead imports the federation directives. It requires version 2.0 of the federation specification, the lowest version
// with these directives.
const federationHead = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"])

`

// federation adds @key to the types that implement Node. It adds @shareable to PageInfo, because other subgraphs may define this
// type too.
func (a *annotation) federation() {
	for _, def := range a.doc.Definitions {
		switch {
		case def.Kind == ast.Object && slices.Contains(def.Interfaces, "Node"):
			def.Directives = append(def.Directives, directive("key", &ast.Argument{Name: "fields", Value: &ast.Value{Kind: ast.StringValue, Raw: "id"}}))
		case def.Name == "PageInfo":
			def.Directives = append(def.Directives, directive("shareable"))
		}
	}
}
