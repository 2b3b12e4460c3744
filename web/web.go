// Package web holds the pages: GraphiQL, the live board, and a small page for when those are not built.
package web

import (
	"embed"
	"io/fs"
)

// dist is what build.mjs makes of explore/ and live/. It is empty until `make web` has run.
//
//go:embed all:dist
var dist embed.FS

//go:embed plain
var plain embed.FS

// Built returns the files of GraphiQL, index.html, and of the live board, live.html, with all that they load in assets/,
// each beside itself compressed (.br, .gz) if that is smaller. It holds none that was not there when this was compiled.
func Built() fs.FS { return sub(dist, "dist") }

// Licenses returns the licence texts of the npm packages in GraphiQL and the live board, "" when those were not built.
func Licenses() string {
	text, err := fs.ReadFile(Built(), "licenses.txt")
	if err != nil {
		return ""
	}
	return string(text)
}

// Plain returns the files of the small page, plain.html, which is always there.
func Plain() fs.FS { return sub(plain, "plain") }

func sub(files embed.FS, dir string) fs.FS {
	under, err := fs.Sub(files, dir)
	if err != nil {
		panic("web: " + err.Error()) // the names are constants
	}
	return under
}
