// Command module gives the project another module path: in each go.mod, in the import declarations of
// all Go files, and in the few other lines that name packages. It changes the files that git tracks, or, outside
// of a git checkout, all files but those of folders with a dot.
//
// It must not know what the packages do.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: module FOLDER PATH")
		os.Exit(2)
	}
	n, err := rename(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
	fmt.Printf("the module is %s now: %d files changed\n", os.Args[2], n)
}

// path is a module path that go get can ask for: elements of letters, digits and -._~, the first with a dot.
var path = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// declared is the line of go.mod that names the module.
var declared = regexp.MustCompile(`(?m)^module (\S+)$`)

// rename changes the module's path in the files of a folder, and returns how many files are different then.
func rename(dir, to string) (int, error) {
	if !path.MatchString(to) && to != "kprobelab" {
		return 0, fmt.Errorf("%q is no module path that go get can ask for: wanted one as example.org/x/kprobelab", to)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return 0, err
	}
	line := declared.FindSubmatch(mod)
	if line == nil {
		return 0, errors.New("go.mod names no module")
	}
	names, err := tracked(dir)
	if err != nil {
		return 0, err
	}
	changed := 0
	for _, name := range names {
		file := filepath.Join(dir, name)
		info, err := os.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		} else if err != nil {
			return changed, err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return changed, err
		}
		now, err := renamed(name, text, string(line[1]), to)
		if err != nil {
			return changed, err
		}
		if bytes.Equal(now, text) {
			continue
		}
		if err := os.WriteFile(file, now, info.Mode().Perm()); err != nil {
			return changed, err
		}
		changed++
	}
	return changed, nil
}

// tracked lists the files of the project.
func tracked(dir string) ([]string, error) {
	out, err := exec.Command("git", "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err == nil {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
	}
	var names []string
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != dir && strings.HasPrefix(e.Name(), "."):
			return filepath.SkipDir
		case !e.IsDir():
			rel, err := filepath.Rel(dir, name)
			names = append(names, rel)
			return err
		}
		return nil
	})
	return names, err
}

// renamed returns the text of a file with the other path in it.
func renamed(name string, text []byte, from, to string) ([]byte, error) {
	base := filepath.Base(name)
	switch {
	case strings.HasSuffix(base, ".go"), strings.HasSuffix(base, ".go.txt"):
		return imports(name, text, from, to)
	case base == "go.mod":
		// module PATH, require PATH VERSION, replace PATH => FOLDER.
		re := regexp.MustCompile(`(?m)^((?:module|require|replace|)[ \t]*)` + regexp.QuoteMeta(from) + `(/\S*)?( .*)?$`)
		return re.ReplaceAll(text, []byte("${1}"+to+"${2}${3}")), nil
	case filepath.ToSlash(name) == "scripts/check.sh":
		// A regular expression of awk.
		escaped := func(s string) []byte { return []byte("/ " + strings.ReplaceAll(s, "/", `\/`) + `\/interp`) }
		return bytes.ReplaceAll(text, escaped(from), escaped(to)), nil
	case strings.HasSuffix(base, ".md"):
		re := regexp.MustCompile("(go doc |require |replace |import |\\t|The package is `)(\"?)" + regexp.QuoteMeta(from) + `(/[a-z]|"| v0| =>)`)
		return re.ReplaceAll(text, []byte("${1}${2}"+to+"${3}")), nil
	}
	return text, nil
}

// imports changes the import declarations of a Go file, and its lines for go generate.
func imports(name string, text []byte, from, to string) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	if err != nil {
		// Tests have files that do not compile.
		return text, nil //nolint:nilerr // such a file imports nothing
	}
	out := slices.Clone(text)
	for _, spec := range slices.Backward(f.Imports) {
		was, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		rest, ours := strings.CutPrefix(was, from)
		if !ours || rest != "" && rest[0] != '/' {
			continue
		}
		at := files.Position(spec.Path.Pos()).Offset
		out = slices.Replace(out, at, at+len(spec.Path.Value), []byte(strconv.Quote(to+rest))...)
	}
	out = bytes.ReplaceAll(out, []byte("//go:generate go run "+from+"/"), []byte("//go:generate go run "+to+"/"))
	if bytes.Equal(out, text) {
		return text, nil
	}
	// Imports of a group are sorted by their paths.
	return format.Source(out)
}
