package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/tools/licence"
)

// part is something that is linked into one of the programs, or in the image.
type part struct {
	name, version, licence, place string
	// relation is SPDX's word for what kprobelab does with it; empty for STATIC_LINK.
	relation string
	// texts are its licences' texts.
	texts []string
}

// systems lists each system with a program, and its build tags.
var systems = []struct{ os, arch, cgo, tags string }{
	{"linux", "amd64", "1", "unicorn,netgo,osusergo"}, {"linux", "arm64", "0", ""}, {"darwin", "arm64", "0", ""}, {"darwin", "amd64", "0", ""}, {"windows", "amd64", "0", ""},
}

// describe writes sbom.spdx.json and LICENCES.txt into a folder: all Go modules of all programs, Go itself, the static archives and the image's keys.
func describe(version, folder, archives, unicorn string) error {
	when, err := epoch()
	if err != nil {
		return err
	}
	parts := map[string]*part{}
	for _, s := range systems {
		if err := modules(parts, s.os, s.arch, s.cgo, s.tags, "./cmd/kprobelab"); err != nil {
			return err
		}
	}
	if err := modules(parts, "js", "wasm", "0", "", "./internal/page/wasm"); err != nil {
		return err
	}
	list := []*part{}
	for _, p := range parts {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *part) int { return cmp.Compare(a.name, b.name) })
	if list, err = withStatic(list, archives, unicorn); err != nil {
		return err
	}
	if list, err = withGo(list); err != nil {
		return err
	}
	if err := writeLicences(filepath.Join(folder, "LICENCES.txt"), list); err != nil {
		return err
	}
	text, err := json.MarshalIndent(spdx(version, when, list), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "sbom.spdx.json"), append(text, '\n'), 0o644)
}

// modules adds the modules that a program links on a system.
func modules(parts map[string]*part, goos, arch, cgo, tags, program string) error {
	cmd := exec.Command("go", "list", "-deps", "-tags="+tags, "-json=Dir,ImportPath,Standard,Module", program)
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+arch, "CGO_ENABLED="+cgo)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list for %s/%s: %w", goos, arch, err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir, ImportPath string
			Standard        bool
			Module          *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		of, err := licence.Of(p.Module.Dir, p.Dir)
		if err != nil {
			return err
		}
		if of.Name == "" {
			return fmt.Errorf("%s: its licence is not known", p.ImportPath)
		}
		m := parts[p.Module.Path]
		if m == nil {
			m = &part{name: p.Module.Path, version: p.Module.Version, place: "pkg:golang/" + p.Module.Path + "@" + p.Module.Version}
			parts[p.Module.Path] = m
		}
		if names := strings.Split(m.licence, " AND "); !slices.Contains(names, spdxName(of.Name)) {
			m.licence = strings.TrimPrefix(m.licence+" AND "+spdxName(of.Name), " AND ")
		}
		if !slices.Contains(m.texts, of.All) {
			m.texts = append(m.texts, of.All)
		}
	}
}

// spdxName is the identifier of SPDX 2.3; a text alone does not say "or later".
func spdxName(name string) string {
	if name == "GPL-2.0" {
		return "GPL-2.0-only"
	}
	return name
}

// sourceLicences gives the licence of each source package of a static archive or another file; that of a Go module is in the module.
var sourceLicences = map[string]string{"glibc": "LGPL-2.1-or-later", "debian-archive-keyring": "GPL-2.0-or-later"}

var gcc = regexp.MustCompile(`^gcc-\d+$`)

// withStatic reads what dist archives has printed, and adds a part for each source package. The source of Unicorn's archive is a Go
// module that is a part already, in the same version or the archive is an old one: it gets the licences of the archive.
func withStatic(list []*part, file, unicorn string) ([]*part, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	done := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("%s: %q is not a file, its source, a version and a package", file, line)
		}
		if done[f[1]] {
			continue
		}
		done[f[1]] = true
		text, err := copyrightOf(f[3], unicorn)
		if err != nil {
			return nil, fmt.Errorf("the text of the licences of %s, which is given away: %w", f[3], err)
		}
		if at := slices.IndexFunc(list, func(p *part) bool { return p.name == f[1] }); at >= 0 {
			if p := list[at]; p.version != f[2] {
				return nil, fmt.Errorf("%s is built from %s %s, and the program links %s", f[0], f[1], f[2], p.version)
			}
			list[at].texts = append(list[at].texts, text)
			continue
		}
		name := sourceLicences[f[1]]
		if gcc.MatchString(f[1]) {
			name = "GPL-3.0-or-later WITH GCC-exception-3.1"
		}
		if name == "" {
			return nil, fmt.Errorf("the licence of %s, which is linked, is not in the table", f[1])
		}
		relation := "STATIC_LINK"
		if filepath.Ext(f[0]) == ".gpg" {
			relation = "CONTAINS" // the image has it beside the program
		}
		list = append(list, &part{name: f[1], version: f[2], licence: name, relation: relation, place: "pkg:deb/debian/" + f[1] + "@" + f[2] + "?arch=source", texts: []string{text}})
	}
	return list, nil
}

// withGo adds Go's own library and runtime.
func withGo(list []*part) ([]*part, error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	f := strings.Split(strings.TrimSpace(string(out)), "\n")
	text, err := os.ReadFile(filepath.Join(f[0], "LICENSE"))
	if err != nil {
		return nil, err
	}
	return append(list, &part{name: "go", version: f[1], licence: "BSD-3-Clause", place: "pkg:generic/go@" + strings.TrimPrefix(f[1], "go"), texts: []string{string(text)}}), nil
}

func writeLicences(file string, list []*part) error {
	var b strings.Builder
	b.WriteString("kprobelab is under GPL-2.0-only; the text is in LICENSE. The programs link these parts; the image has Debian's keys, too. The sources of kprobelab and its Go modules are in\nkprobelab-VERSION-source.tar.gz, those of the static archives and the keys in the folder sources.\n\n")
	for _, p := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", p.name, p.version, p.licence)
	}
	for _, p := range list {
		for _, text := range p.texts {
			fmt.Fprintf(&b, "\n== %s %s\n\n%s\n", p.name, p.version, strings.TrimSpace(text))
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// spdx is the document of SPDX 2.3.
func spdx(version string, when time.Time, list []*part) map[string]any {
	type object = map[string]any
	pack := func(id, name, version, licence, place string) object {
		o := object{"SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
			"licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"}
		if place != "" {
			o["externalRefs"] = []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": place}}
		}
		return o
	}
	const root = "SPDXRef-kprobelab"
	packages := []object{pack(root, "kprobelab", version, "GPL-2.0-only", "")}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": root}}
	for _, p := range list {
		id := "SPDXRef-" + notInID.ReplaceAllString(p.name, "-")
		packages = append(packages, pack(id, p.name, p.version, p.licence, p.place))
		relations = append(relations, object{"spdxElementId": root, "relationshipType": cmp.Or(p.relation, "STATIC_LINK"), "relatedSpdxElement": id})
	}
	return object{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "kprobelab-" + version,
		"documentNamespace": "https://spdx.org/spdxdocs/kprobelab-" + version, "packages": packages, "relationships": relations,
		"creationInfo": object{"created": when.Format(time.RFC3339), "creators": []string{"Tool: kprobelab-dist"}}}
}
