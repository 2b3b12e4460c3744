package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"oddsgraph/tests/tool"
	"oddsgraph/web"
)

// TestLicenses checks that THIRD_PARTY_LICENSES is what this command writes now.
func TestLicenses(t *testing.T) {
	t.Chdir("../..")
	out := t.TempDir() + "/licences"
	if err := run(out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("THIRD_PARTY_LICENSES")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("THIRD_PARTY_LICENSES is stale: run make generate")
	}
	for _, name := range []string{"Go standard library", "github.com/99designs/gqlgen v", "github.com/coder/websocket v"} {
		if !strings.Contains(string(got), name) {
			t.Errorf("THIRD_PARTY_LICENSES lacks %s", name)
		}
	}
}

func TestModuleWithoutLicence(t *testing.T) {
	if _, err := (&component{name: "example.com/none v1", root: t.TempDir()}).texts(); err == nil || !strings.Contains(err.Error(), "example.com/none v1") {
		t.Errorf("got the error %v for a module without a licence, want an error with the name of the module", err)
	}
}

func TestPageLicences(t *testing.T) {
	text := web.Licenses()
	if text == "" {
		tool.Missing(t, "the pages are not built: run make web")
	}
	for _, name := range []string{"\nreact ", "\ngraphiql ", "\nlightweight-charts ", "Permission is hereby granted"} {
		if !strings.Contains(text, name) {
			t.Errorf("the licences of the pages lack %q", name)
		}
	}
}

// TestEqualLicences checks that a license text appears once even if several files of a component contain the text.
func TestEqualLicences(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"COPYING": "one", "LICENSE": "two", "NOTICE": "one"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if texts, err := (&component{name: "example.com/equal v1", root: root}).texts(); err != nil || !slices.Equal(texts, []string{"one\n", "two\n"}) {
		t.Errorf("the texts are %q, %v", texts, err)
	}
}
