package uprobes

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"kprobelab/internal/own"
	"kprobelab/internal/selfcheck"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/kimage"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Run runs the verb uprobes.
func Run(args []string) error {
	return verb.Parts([]verb.Verb{
		{Name: "draw", Does: "write the places of programs: -kernel VMLINUZ -o FOLDER FILE...", Run: draw},
		{Name: "own", Does: "compare with the answers of the image's own function: -kernel VMLINUZ FOLDER", Run: ownAnswers},
		{Name: "compare", Does: "compare with the answers of a booted kernel: -kernel VMLINUZ FOLDER ANSWERS", Run: compareFiles},
	}, args)
}

func draw(args []string) error {
	f := flag.NewFlagSet("draw", flag.ExitOnError)
	places := f.Int("places", 0, "how many of the programs' instructions; 0 for all")
	random := f.Int("random", 20000, "how many random instructions, and places inside instructions")
	seed := f.Uint64("seed", 1, "what decides which")
	kernel := f.String("kernel", "", "the kernel whose decoder finds the boundaries")
	dir := f.String("o", "", "the folder that gets code and list")
	if err := f.Parse(args); err != nil {
		return err
	}
	img, err := kimage.Open(*kernel, nil)
	if err != nil {
		return err
	}
	c := corpus{stands: map[uint32]int{}, seen: map[instruction]uint32{}}
	for _, name := range f.Args() {
		if err := c.add(name, img.Profile()); err != nil {
			return err
		}
	}
	r := rand.New(rand.NewPCG(*seed, 0))
	c.invent(*random, r)
	return c.write(*dir, *places, *random, r, os.Stdout)
}

// ownAnswers asks the image's own function about all instructions, on the engine.
func ownAnswers(args []string) error {
	f := flag.NewFlagSet("own", flag.ExitOnError)
	kernel := f.String("kernel", "", "the kernel whose function is asked")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 {
		return flag.ErrHelp
	}
	img, err := kimage.Open(*kernel, nil)
	if err != nil {
		return err
	}
	k, err := own.Open(img, 0)
	if err != nil {
		return err
	}
	defer k.Close()
	code, err := os.ReadFile(filepath.Join(f.Arg(0), "code"))
	if err != nil {
		return err
	}
	list, err := readNumbers(filepath.Join(f.Arg(0), "instructions"))
	if err != nil {
		return err
	}
	differ := 0
	for _, at := range list {
		what, err := selfcheck.Uprobe(k, code[at:min(len(code), int(at)+uprobes.InsnSize)], x86.Addr(at))
		if err != nil {
			return err
		}
		if what != "" {
			if differ++; differ <= 20 {
				fmt.Println(what)
			}
		}
	}
	fmt.Printf("the image's own arch_uprobe_analyze_insn, here: %d of all %d instructions differ\n", differ, len(list))
	if differ > 0 {
		return verb.ErrDiffer
	}
	return nil
}

func compareFiles(args []string) error {
	f := flag.NewFlagSet("compare", flag.ExitOnError)
	kernel := f.String("kernel", "", "the kernel that was asked")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 2 {
		return flag.ErrHelp
	}
	img, err := kimage.Open(*kernel, nil)
	if err != nil {
		return err
	}
	code, err := os.ReadFile(filepath.Join(f.Arg(0), "code"))
	if err != nil {
		return err
	}
	list, err := readNumbers(filepath.Join(f.Arg(0), "list"))
	if err != nil {
		return err
	}
	stands, err := readNumbers(filepath.Join(f.Arg(0), "stands"))
	if err != nil {
		return err
	}
	answers, err := os.Open(f.Arg(1))
	if err != nil {
		return err
	}
	defer answers.Close()
	said, err := readAnswers(answers)
	if err != nil {
		return err
	}
	differ, err := compare(os.Stdout, code, list, stands, said, img.Profile())
	if err == nil && differ > 0 {
		err = verb.ErrDiffer
	}
	return err
}

func readNumbers(name string) ([]uint32, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	list := make([]uint32, len(b)/4)
	for i := range list {
		list[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return list, nil
}

// counted is the number of places that were asked, and of the boundaries that they stand for.
type counted struct{ places, boundaries int }

func printCounts(w io.Writer, count map[string]counted) {
	fmt.Fprintf(w, "%8s %10s\n", "asked", "boundaries")
	for _, what := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(w, "%8d %10d %s\n", count[what].places, count[what].boundaries, what)
	}
}
