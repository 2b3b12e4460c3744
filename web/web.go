// Package web contains the pages: GraphiQL, the live board, and a small page that is used if the other two are not built.
package web

import (
	"embed"
	"encoding/json"
	"io/fs"
)

// dist contains the output of build.mjs for explore/ and live/. It contains no pages until `make web` has run.
//
//go:embed all:dist
var dist embed.FS

//go:embed plain
var plain embed.FS

// Built returns the files of GraphiQL (index.html) and of the live board (live.html). Both pages load files in assets/. If a
// compressed form of a file (.br, .gz) is smaller than the file, the result contains this form too. The result contains only files
// that existed when the program was compiled.
func Built() fs.FS { return sub(dist, "dist") }

// Licenses returns the licence texts of the npm packages in GraphiQL and the live board. It returns "" if these pages were not
// built.
func Licenses() string {
	text, err := fs.ReadFile(Built(), "licenses.txt")
	if err != nil {
		return ""
	}
	return string(text)
}

// Documents returns the GraphQL documents that GraphiQL's examples and the live board send. It returns nil if these pages were
// not built.
func Documents() []string {
	text, err := fs.ReadFile(Built(), "documents.json")
	if err != nil {
		return nil
	}
	var texts []string
	if err := json.Unmarshal(text, &texts); err != nil {
		panic("web: documents.json: " + err.Error()) // build.mjs writes this file, so it is valid
	}
	return texts
}

// Plain returns the files of the small page, plain.html, which always exists.
func Plain() fs.FS { return sub(plain, "plain") }

func sub(files embed.FS, dir string) fs.FS {
	folder, err := fs.Sub(files, dir)
	if err != nil {
		panic("web: " + err.Error()) // the names are constants
	}
	return folder
}
