// Package skeletons asks kernels about the BPF objects inside of tools: programs of libbpf have them as a skeleton's bytes (make load-tools).
//
// It must not know how bpftool was run.
package skeletons

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/internal/tools/conformance/verb"
)

// parts are the verbs below skeletons. Each takes flags, then files.
var parts = []verb.Verb{
	{Name: "objects", Does: "write the objects of tools into a folder", Run: write},
	{Name: "table", Does: "write a table of objects and kernels", Run: table},
	{Name: "bpftool", Does: "compare with what bpftool prog loadall … autoattach has printed", Run: compare},
}

// Run runs the verb skeletons.
func Run(args []string) error { return verb.Parts(parts, args) }

// write writes the objects of tools. Tools that are the same file have one.
func write(args []string) error {
	f := flag.NewFlagSet("objects", flag.ContinueOnError)
	dir := f.String("o", "", "the `FOLDER` that gets the objects")
	if err := f.Parse(args); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, tool := range f.Args() {
		b, err := os.ReadFile(tool)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(tool), "-libbpf")
		for i, object := range inside(b) {
			if seen[string(object)] {
				continue
			}
			seen[string(object)] = true
			if i > 0 {
				name += fmt.Sprint("-", i+1)
			}
			if err := os.WriteFile(filepath.Join(*dir, name+".bpf.o"), object, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
