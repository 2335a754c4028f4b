package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// archive is a file that is given away as another made it, in the program or in the image, and its source: a source package of Debian's, or
// the Go module that has Unicorn's source in C. pkg is the package that has the file, or the script that builds it.
type archive struct{ file, source, version, pkg string }

// linked lists the archives and objects of a linker's map that are not of this build, each once.
func linked(r io.Reader) ([]string, error) {
	var list []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		file, ok := strings.CutPrefix(lines.Text(), "LOAD ")
		if !ok || !filepath.IsAbs(file) || strings.Contains(file, "/go-link-") {
			continue
		}
		file = filepath.Clean(file)
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = real
		}
		if !slices.Contains(list, file) {
			list = append(list, file)
		}
	}
	return list, lines.Err()
}

// unicornMaker is named in place of a package for the archive that it builds from the source in a Go module.
const unicornMaker = "scripts/unicorn.sh"

// copyrightOf reads the licences of a package, or of the Unicorn that is built.
func copyrightOf(pkg, unicorn string) (string, error) {
	file := filepath.Join("/usr/share/doc", pkg, "copyright")
	if pkg == unicornMaker {
		file = filepath.Join(unicorn, "copyright")
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// sourceOf returns the source of a file: of Unicorn's archive the Go module that scripts/unicorn.sh has written beside it, of
// the others the source package that dpkg knows.
func sourceOf(file, unicorn string) (archive, error) {
	if own, err := filepath.EvalSymlinks(filepath.Join(unicorn, "lib", "libunicorn.a")); err == nil && own == file {
		text, err := os.ReadFile(filepath.Join(unicorn, "source"))
		f := strings.Fields(string(text))
		if err != nil || len(f) != 2 {
			return archive{}, fmt.Errorf("%s: nothing says which source it was built from; a release takes the one that %s builds", file, unicornMaker)
		}
		return archive{file, f[0], f[1], unicornMaker}, nil
	}
	out, err := exec.Command("dpkg-query", "-S", file).Output()
	owner, _, ok := strings.Cut(string(out), ": ")
	if err != nil || !ok {
		return archive{}, fmt.Errorf("%s: no package has it, so its source cannot be shipped", file)
	}
	out, err = exec.Command("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", owner).Output()
	f := strings.Fields(string(out))
	if err != nil || len(f) != 2 {
		return archive{}, fmt.Errorf("dpkg does not know the source of %s, which has %s", owner, file)
	}
	return archive{file, f[0], f[1], strings.TrimSuffix(owner, ":amd64")}, nil
}

// printArchives prints a line for each static archive of a linker's map, and for each of these other files: name, source, version, and the
// package that has the file, or the script that builds it.
func printArchives(w io.Writer, linkMap, unicorn string, others []string) error {
	f, err := os.Open(linkMap)
	if err != nil {
		return err
	}
	defer f.Close()
	files, err := linked(f)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s names no file that was linked", linkMap)
	}
	var lines []string
	for _, file := range append(files, others...) {
		a, err := sourceOf(file, unicorn)
		if err != nil {
			return err
		}
		lines = append(lines, filepath.Base(file)+"\t"+a.source+"\t"+a.version+"\t"+a.pkg+"\n")
	}
	slices.Sort(lines)
	_, err = io.WriteString(w, strings.Join(slices.Compact(lines), ""))
	return err
}
