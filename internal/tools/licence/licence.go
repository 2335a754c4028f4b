// Package licence recognizes the licences of what a GPL-2.0-only program may link, by phrases of their
// texts, and finds the text that covers a package.
//
// It must not know which packages are linked.
package licence

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
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

// Classify returns the licence of a text, "" if it is not in the table. A text that mentions
// Apache's licence anywhere counts as not in the table.
func Classify(text string) string {
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

// Section is the part of a licence file that covers the package at dir, a path
// relative to the file. A file with several licences (klauspost/compress)
// separates them by a line of dashes and says "Files: folder/*" in all but the
// first.
func Section(text, dir string) string {
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

// Text is a licence file's part that covers a package.
type Text struct {
	// Name is its SPDX identifier, "" if it is not in the table.
	Name string
	// File has the text; empty if there is none.
	File string
	// All is the whole text of File.
	All string
}

// Of returns the licence nearest to a package: of its own folder, or of one above it within the module.
func Of(module, dir string) (Text, error) {
	rel, err := filepath.Rel(module, dir)
	if err != nil {
		return Text{}, err
	}
	rel = filepath.ToSlash(rel)
	for dir := rel; ; dir = path.Dir(dir) {
		entries, err := os.ReadDir(filepath.Join(module, dir))
		if err != nil {
			return Text{}, err
		}
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) {
				continue
			}
			file := filepath.Join(module, dir, e.Name())
			text, err := os.ReadFile(file)
			if err != nil {
				return Text{}, err
			}
			below, err := filepath.Rel(dir, rel)
			if err != nil {
				return Text{}, err
			}
			return Text{Classify(Section(string(text), filepath.ToSlash(below))), file, string(text)}, nil
		}
		if dir == "." {
			return Text{}, nil
		}
	}
}
