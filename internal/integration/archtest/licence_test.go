package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// licences that may be linked into a GPL-2.0-only program, each recognized by a phrase of its text,
// tried in this order. Apache-2.0 is not among them: its patent terms are a further restriction
// that GPL-2.0 section 6 does not allow.
var licences = []struct{ name, phrase string }{
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"GPL-2.0", "GNU GENERAL PUBLIC LICENSE Version 2, June 1991"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "used to endorse or promote products derived from this software"},
	{"BSD-2-Clause", "Redistribution and use in source and binary forms, with or without modification, are permitted"},
}

var spaces = regexp.MustCompile(`[\s*#>]+`)

// classify returns the licence of a text, "" if it is not in the table. A text that mentions
// Apache's licence anywhere counts as not in the table.
func classify(text string) string {
	flat := spaces.ReplaceAllString(text, " ")
	if strings.Contains(flat, "Apache License") {
		return ""
	}
	for _, l := range licences {
		if strings.Contains(flat, l.phrase) {
			return l.name
		}
	}
	return ""
}

var rule = regexp.MustCompile(`(?m)^-{5,}$`)
var files = regexp.MustCompile(`(?m)^Files: (\S+)$`)

// section is the part of a licence file that covers the package at dir, a path
// relative to the file. A file with several licences (klauspost/compress)
// separates them by a line of dashes and says "Files: folder/*" in all but the
// first.
func section(text, dir string) string {
	general := ""
	for i, part := range rule.Split(text, -1) {
		globs := files.FindAllStringSubmatch(part, -1)
		for _, g := range globs {
			if within(dir, strings.TrimSuffix(g[1], "/*")) {
				return part
			}
		}
		if i == 0 || len(globs) == 0 {
			general += part
		}
	}
	return general
}

func within(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(txt|md))?$`)

// licenceOf is the licence nearest to a package: of its own folder, or of one
// above it within the module.
func licenceOf(t *testing.T, p *goPackage) (name, file string) {
	t.Helper()
	rel, err := filepath.Rel(p.Module.Dir, p.Dir)
	require.NoError(t, err)
	rel = filepath.ToSlash(rel)
	for dir := rel; ; dir = path.Dir(dir) {
		entries, err := os.ReadDir(filepath.Join(p.Module.Dir, dir))
		require.NoError(t, err)
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) {
				continue
			}
			file = filepath.Join(p.Module.Dir, dir, e.Name())
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			below, err := filepath.Rel(dir, rel)
			require.NoError(t, err)
			return classify(section(string(text), filepath.ToSlash(below))), file
		}
		if dir == "." {
			return "", ""
		}
	}
}

func TestLinkedLicencesGoWithGPL2(t *testing.T) {
	for _, p := range goList(t, "1") {
		if p.Standard || p.ours() != "" {
			continue
		}
		require.NotNil(t, p.Module, p.ImportPath)
		require.NotEmpty(t, p.Module.Dir, "%s is not downloaded", p.Module.Path)
		name, file := licenceOf(t, &p)
		if name == "" {
			t.Errorf("%s: its licence is not one that GPL-2.0 may link (text: %q)", p.ImportPath, file)
		}
		requireNoApacheFile(t, &p)
	}
}

// A file may carry other terms than its module does.
func requireNoApacheFile(t *testing.T, p *goPackage) {
	t.Helper()
	for _, f := range append(p.GoFiles, p.CgoFiles...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, f))
		require.NoError(t, err)
		if head := string(text[:min(len(text), 2048)]); strings.Contains(head, "Apache-2.0") || strings.Contains(head, "Apache License") {
			t.Errorf("%s: %s is under the Apache licence", p.ImportPath, f)
		}
	}
}

func TestProjectLicenceIsGPL2(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repositoryRoot(t), "LICENSE"))
	require.NoError(t, err)
	require.Equal(t, "GPL-2.0", classify(string(text)))
}

func TestClassify(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"mit_wrapped", "Permission is hereby granted, free of\n charge, to any person obtaining a copy", "MIT"},
		{"bsd_two_clauses", "Redistribution and use in source and binary forms, with or without\nmodification, are permitted provided", "BSD-2-Clause"},
		{"bsd_comment_prefix", "# be used to endorse or promote\n# products derived from this software", "BSD-3-Clause"},
		{"apache", "Apache License\nVersion 2.0, January 2004", ""},
		{"apache_beside_mit", "Permission is hereby granted, free of charge, to any person obtaining a copy\nor the Apache License", ""},
		{"unknown", "All rights reserved.", ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, classify(c.text)) })
	}
}

func TestSectionOfAMixedLicenceFile(t *testing.T) {
	text := "general\n-----------\nFiles: web/*\nweb's\n-----------\nFiles: a/b/*\nFiles: c/*\nb's\n"
	require.Contains(t, section(text, "zstd"), "general")
	require.NotContains(t, section(text, "zstd"), "web's")
	require.Contains(t, section(text, "web/deep"), "web's")
	require.Contains(t, section(text, "c"), "b's")
	require.NotContains(t, section(text, "website"), "web's")
}
