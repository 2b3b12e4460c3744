package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes an SBOM. Its components are Go's standard library, the modules in the build information of the programs, and the
// npm packages in the pages.
func writeSBOM(name, version string, programs []string) (err error) {
	components, err := npmPackages("web/dist/packages.json")
	if err != nil {
		return err
	}
	for _, program := range programs {
		modules, err := goModules(program)
		if err != nil {
			return err
		}
		components = append(components, modules...)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.PackageURL, b.PackageURL) })
	components = slices.CompactFunc(components, func(a, b cdx.Component) bool { return a.PackageURL == b.PackageURL })

	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		Type: cdx.ComponentTypeApplication, Name: "oddsgraph", Version: version, BOMRef: "oddsgraph",
		Licenses: &cdx.Licenses{{Expression: "Apache-2.0"}},
	}}
	bom.Components = &components
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
}

// goModules returns Go and the modules in the build information of a program. The program may be for any platform.
func goModules(program string) ([]cdx.Component, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	components := []cdx.Component{library("pkg:golang/std@", "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		components = append(components, library("pkg:golang/"+m.Path+"@", m.Path, m.Version))
	}
	return components, nil
}

// npmPackages reads the list that web/licenses.mjs wrote.
func npmPackages(file string) ([]cdx.Component, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var packages []struct{ Name, Version, License string }
	if err := json.Unmarshal(text, &packages); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var components []cdx.Component
	for _, p := range packages {
		c := library("pkg:npm/"+strings.Replace(p.Name, "@", "%40", 1)+"@", p.Name, p.Version)
		c.Licenses = &cdx.Licenses{{Expression: p.License}}
		components = append(components, c)
	}
	return components, nil
}

func library(purl, name, version string) cdx.Component {
	return cdx.Component{Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl + version, BOMRef: purl + version}
}
