// Command gen writes the code made from schema.graphqls: gqlgen's, and that by which package compiled answers queries. Run it
// in the module's root; `make generate` does.
package main

import (
	"fmt"
	"os"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err == nil {
		err = api.Generate(cfg, api.AddPlugin(&compiler{filename: "graph/compiled.generated.go"}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
