package values

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// notLoaded is bpftrace's message, 0.27.1 has other words, where the verifier refuses the code that it made of a
// script; there is no verifier here.
var notLoaded = regexp.MustCompile(`ERROR: (Loading BPF object\(s\) failed\.|Error loading BPF program for .* \(Permission denied\))`)

// compareFolders says which scripts print something else in bpftrace's folder, the first, than in the other.
func compareFolders(w io.Writer, a, b string) (same bool, err error) {
	files, err := filepath.Glob(filepath.Join(a, "*"))
	if err != nil {
		return false, err
	}
	scripts, differ, refused := 0, 0, 0
	for _, f := range files {
		name := filepath.Base(f)
		x, err := os.ReadFile(f)
		if err != nil {
			return false, err
		}
		y, err := os.ReadFile(filepath.Join(b, name))
		if err != nil {
			return false, err
		}
		of, other := split(string(x)), split(string(y))
		if notLoaded.Match(x) {
			refused++
			fmt.Fprintf(w, "%s is not compared: the kernel's verifier refuses what bpftrace made of it\n", name)
			continue
		}
		scripts += len(of)
		if _, ok := of[""]; ok {
			scripts-- // before the first marker
		}
		if bytes.Equal(x, y) {
			continue
		}
		found := 0
		for _, n := range keys(of, other) {
			if of[n] != other[n] {
				found++
				fmt.Fprintf(w, "%s, script %s:\n--- bpftrace\n%s+++ kprobelab\n%s\n", name, n, of[n], other[n])
			}
		}
		if found == 0 {
			found = 1
			fmt.Fprintf(w, "%s: the scripts print the same, in another order\n", name)
		}
		differ += found
	}
	fmt.Fprintf(w, "%d of %d scripts differ", differ, scripts)
	if refused > 0 {
		fmt.Fprintf(w, "; the verifier refused %d of %d files", refused, len(files))
	}
	fmt.Fprintln(w)
	return differ == 0, nil
}

func keys(maps ...map[string]string) (list []string) {
	seen := map[string]bool{}
	for _, m := range maps {
		for k := range m {
			if !seen[k] {
				seen[k] = true
				list = append(list, k)
			}
		}
	}
	sort.Strings(list)
	return list
}

// ofMap is a line that a map's name begins, with its script.
var ofMap = regexp.MustCompile(`^@m(\d+)_\d+`)

// split returns the output of each script, by the script's number: the lines after its marker,
// and the lines of its maps.
func split(text string) map[string]string {
	out := map[string]string{}
	now := ""
	for _, line := range strings.SplitAfter(text, "\n") {
		if n, ok := strings.CutPrefix(line, marker); ok {
			now = strings.TrimSpace(n)
		} else if m := ofMap.FindStringSubmatch(line); m != nil {
			now = m[1]
		}
		out[now] += line
	}
	return out
}
