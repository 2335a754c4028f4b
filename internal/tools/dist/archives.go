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

// archive is a file that the linker put into the program, and the source package that it was built from.
type archive struct{ file, source, version string }

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

// sourceOf asks dpkg which source package a file of this system is built from; that of Unicorn's archive, which make
// deps unpacks without dpkg, is in the file source beside it.
func sourceOf(file, unicorn string) (archive, error) {
	if filepath.Base(file) == "libunicorn.a" {
		if text, err := os.ReadFile(filepath.Join(unicorn, "source")); err == nil {
			if f := strings.Fields(string(text)); len(f) == 2 {
				return archive{file, f[0], f[1]}, nil
			}
		}
		if text, err := os.ReadFile(filepath.Join(unicorn, "version")); err == nil {
			return archive{file, "unicorn-engine", strings.TrimSpace(string(text)) + "*"}, nil
		}
	}
	out, err := exec.Command("dpkg-query", "-S", file).Output()
	owner, _, ok := strings.Cut(string(out), ": ")
	if err != nil || !ok {
		return archive{}, fmt.Errorf("%s is linked into the program, and no package has it: its source cannot be shipped", file)
	}
	out, err = exec.Command("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", owner).Output()
	f := strings.Fields(string(out))
	if err != nil || len(f) != 2 {
		return archive{}, fmt.Errorf("dpkg does not know the source of %s, which has %s", owner, file)
	}
	return archive{file, f[0], f[1]}, nil
}

// printArchives prints a line for each static archive of a linker's map: name, source package, version.
func printArchives(w io.Writer, linkMap, unicorn string) error {
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
	for _, file := range files {
		a, err := sourceOf(file, unicorn)
		if err != nil {
			return err
		}
		lines = append(lines, filepath.Base(file)+"\t"+a.source+"\t"+a.version+"\n")
	}
	slices.Sort(lines)
	_, err = io.WriteString(w, strings.Join(slices.Compact(lines), ""))
	return err
}
