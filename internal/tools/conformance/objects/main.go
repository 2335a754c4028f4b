package objects

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kprobelab/internal/tools/conformance/sections"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
)

// Run runs the verb objects.
func Run(args []string) error {
	return verb.Parts([]verb.Verb{
		{Name: "draw", Does: "write drawn sections as objects: -kernel VMLINUZ -o FOLDER", Run: draw},
		{Name: "compare", Does: "compare bpftool's answers with check's: -kernel VMLINUZ FOLDER", Run: compareFiles},
	}, args)
}

// listFile has the drawn sections, one a line; the n-th is of the n-th object.
const listFile = "list"

func draw(args []string) error {
	f := flag.NewFlagSet("draw", flag.ExitOnError)
	n := f.Int("n", 600, "how many sections")
	seed := f.Uint64("seed", 1, "what decides which")
	kernel := f.String("kernel", "", "the kernel whose names are drawn")
	given := f.String("sections", "", "a `FILE` of sections, one a line, in place of drawn ones")
	dir := f.String("o", "", "the folder that gets list and objects")
	if err := f.Parse(args); err != nil {
		return err
	}
	names, err := drawn(*given, *kernel, *n, *seed)
	if err != nil {
		return err
	}
	objects := filepath.Join(*dir, "objects")
	if err := os.MkdirAll(objects, 0o755); err != nil {
		return err
	}
	for i, section := range names {
		// Loaders leave a program with a question mark to the tool, which loads it as one without.
		b := sections.Object(strings.TrimPrefix(section, "?"))
		if err := os.WriteFile(filepath.Join(objects, fmt.Sprintf("%04d.o", i)), b, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(*dir, listFile), []byte(strings.Join(names, "\n")+"\n"), 0o644)
}

// drawn are the sections of a file, or n that are drawn of a kernel.
func drawn(file, kernel string, n int, seed uint64) (list []string, err error) {
	if file != "" {
		b, err := os.ReadFile(file)
		return strings.Split(strings.TrimSpace(string(b)), "\n"), err
	}
	img, err := kimage.Open(kernel, nil)
	if err != nil {
		return nil, err
	}
	d := sections.New(img, seed)
	for range n {
		list = append(list, d.Section())
	}
	return list, nil
}
