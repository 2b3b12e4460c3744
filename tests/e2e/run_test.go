package e2e

import (
	"context"
	"io"
	"os"

	"oddsgraph/app"
)

// run runs the program in this process with a command line.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	return app.Run(ctx, thirdParty(), args, environ, stdout, stderr)
}

// thirdParty returns the licence texts that the program embeds.
func thirdParty() string {
	text, err := os.ReadFile("THIRD_PARTY_LICENSES")
	if err != nil {
		panic(err)
	}
	return string(text)
}
