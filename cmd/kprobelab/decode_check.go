package main

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder"
	"kprobelab/decoder/compare"
	"kprobelab/kimage"
)

const withHelp = "any of zydis, objdump, llvm, x86asm, capstone, xed; without it, those of the first three\nthat are on the machine (make deps-test fetches them)"

func compareFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "with", Usage: "compare with `LIST`: " + strings.ReplaceAll(withHelp, "\n", " ")},
		&cli.StringSliceFlag{Name: "cmd", Usage: "compare with `'PROGRAM ARGS'`, which speaks the line protocol: hex in; length, class, target out (repeatable)"},
		&cli.BoolFlag{Name: "strict", Usage: "known causes and one side's refusals are differences, too"},
	}
}

func decodeCheckCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "compare decoders over the code of an ELF file or a kernel image",
		ArgsUsage: "FILE",
		Description: "Every instruction of every executable section is put to our decoder and to the others.\n" +
			"Where both accept it, its length has to be the same, and for control flow its class and\n" +
			"target. Differences are grouped by decoder and opcode, with an example each; those with\n" +
			"a known cause (docs/decoder.md) stand apart. Exit code 1 says that there are others.\n\n" +
			examples(
				"kprobelab decode check /boot/vmlinuz-6.1.0-18-amd64",
				"kprobelab decode check --with zydis,x86asm /usr/lib/x86_64-linux-gnu/libc.so.6",
				"kprobelab decode check --cmd './mydecoder --hex' vmlinux",
			),
		Flags:  compareFlags(),
		Action: func(_ context.Context, c *cli.Command) error { return decodeCheck(t, c) },
	}
}

func decodeFuzzCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:      "fuzz",
		Usage:     "compare decoders over generated encodings",
		ArgsUsage: " ",
		Description: "Encodings are made by opcode map, prefixes and operand forms; the same seed makes the\n" +
			"same ones. Here a refusal by one side is a difference, too. An example of each difference\n" +
			"is shrunk, and printed as a command line that shows it again. Exit code 1 says that\n" +
			"there are differences without a known cause (docs/decoder.md).\n\n" +
			examples(
				"kprobelab decode fuzz --count 10000000",
				"kprobelab decode fuzz --seed 7 --with zydis,llvm --append regressions.txt",
				"kprobelab decode fuzz --cmd ./mydecoder",
			),
		Flags: append([]cli.Flag{
			&cli.Uint64Flag{Name: "seed", Usage: "`N` picks the sequence", Value: 1},
			&cli.IntFlag{Name: "count", Usage: "how many encodings, `N`", Value: 1_000_000},
			&cli.StringFlag{Name: "append", Usage: "append shrunk differences without a cause to `FILE`, a row each as in decoder/compare/testdata/corpus"},
		}, compareFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return decodeFuzz(t, c) },
	}
}

// openDecoders starts the decoders that the flags name.
func openDecoders(c *cli.Command) ([]compare.Decoder, error) {
	var list []compare.Decoder
	names := compare.Names[:3]
	named := c.IsSet("with") || c.IsSet("cmd")
	if named {
		names = strings.FieldsFunc(c.String("with"), func(r rune) bool { return r == ',' || r == ' ' })
	}
	if c.IsSet("with") && len(names) == 0 {
		return nil, usagef("--with names no decoder: there are %s", strings.Join(compare.Names, ", "))
	}
	for n, name := range names {
		if slices.Contains(names[:n], name) {
			continue
		}
		if named && !slices.Contains(compare.Names, name) {
			return nil, usagef("there is no decoder %q: there are %s", name, strings.Join(compare.Names, ", "))
		}
		d, err := compare.Open(name)
		if err != nil && named {
			return nil, &failure{exitImage, err}
		}
		if err == nil {
			list = append(list, d)
		}
	}
	for _, line := range c.StringSlice("cmd") {
		f := strings.Fields(line)
		if len(f) == 0 {
			return nil, usagef("--cmd wants a program")
		}
		d, err := compare.StartChild(f[0], f[0], f[1:]...)
		if err != nil {
			return nil, &failure{exitImage, err}
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return nil, &failure{exitImage, errors.New("there is no other decoder on this machine; make deps-test fetches some, --with x86asm takes the one in the program")}
	}
	return list, nil
}

// closeDecoders ends a comparison. What is wrong with a decoder comes before
// what the comparison has found.
func closeDecoders(list []compare.Decoder, err *error) {
	for _, d := range list {
		if wrong := d.Close(); wrong != nil {
			*err = &failure{exitImage, wrong}
		}
	}
}

// codeSection is a piece of a file's code.
type codeSection struct {
	addr uint64
	data []byte
}

// codeOf are the executable sections of an ELF file, or the text of a kernel
// image.
func codeOf(t *term, path string) ([]codeSection, error) {
	f, err := elf.Open(path)
	if err != nil {
		return kernelCode(t, path)
	}
	defer f.Close()
	var list []codeSection
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type != elf.SHT_PROGBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			return nil, &failure{exitImage, fmt.Errorf("%s: section %s: %w", path, s.Name, err)}
		}
		list = append(list, codeSection{s.Addr, data})
	}
	if f.Machine != elf.EM_X86_64 || len(list) == 0 {
		return nil, &failure{exitImage, fmt.Errorf("%s: no x86-64 code in it", path)}
	}
	return list, nil
}

func kernelCode(t *term, path string) ([]codeSection, error) {
	img, err := kimage.Open(path, &kimage.Options{NoBoot: true, Progress: t.progress})
	t.progressDone()
	if err != nil {
		return nil, &failure{exitImage, err}
	}
	var list []codeSection
	for _, s := range img.Segments() {
		if s.Exec {
			list = append(list, codeSection{uint64(s.Addr), s.Data})
		}
	}
	return list, nil
}

func decodeCheck(t *term, c *cli.Command) (err error) {
	if c.Args().Len() != 1 {
		return usagef("decode check wants one file; try kprobelab decode check --help")
	}
	sections, err := codeOf(t, c.Args().First())
	if err != nil {
		return err
	}
	others, err := openDecoders(c)
	if err != nil {
		return err
	}
	defer closeDecoders(others, &err)
	cmp := &compare.Comparison{Strict: c.Bool("strict")}
	seen := map[string]bool{}
	for _, s := range sections {
		if err := compare.Walk(others, s.data, s.addr, cmp, seen, func(done, total int64) { t.progress("check", done, total) }); err != nil {
			return &failure{exitImage, err}
		}
	}
	t.progressDone()
	return t.showDifferences(c, cmp, others, nil)
}

func decodeFuzz(t *term, c *cli.Command) (err error) {
	if err := atMost(c, 0); err != nil {
		return err
	}
	if c.Int("count") < 0 {
		return usagef("--count: %d is no number of encodings", c.Int("count"))
	}
	others, err := openDecoders(c)
	if err != nil {
		return err
	}
	defer closeDecoders(others, &err)
	cmp := &compare.Comparison{Strict: true}
	err = compare.Fuzz(others, c.Uint64("seed"), c.Int("count"), cmp, func(done, total int64) { t.count("fuzz", "encodings", done, total) })
	if err != nil {
		return &failure{exitImage, err}
	}
	t.progressDone()
	byName := map[string]compare.Decoder{}
	for _, o := range others {
		byName[o.Name()] = o
	}
	shrink := func(d *compare.Difference) {
		if o := byName[d.Decoder]; o != nil && d.Cause == "" {
			d.Example = compare.Shrink(o, d)
		}
	}
	return t.showDifferences(c, cmp, others, shrink)
}

// shrinkAtMost bounds how many differences are shrunk; the others are shown as
// found.
const shrinkAtMost = 50

// showDifferences prints the groups; an error says that some have no cause.
func (t *term) showDifferences(c *cli.Command, cmp *compare.Comparison, others []compare.Decoder, shrink func(*compare.Difference)) error {
	out := bufio.NewWriter(t.out)
	defer out.Flush()
	var names []string
	for _, o := range others {
		names = append(names, o.Name())
	}
	fmt.Fprintf(out, "%d asked, %d instructions; compared with %s\n", cmp.Instructions, cmp.Accepted, strings.Join(names, ", "))
	unexplained := 0
	var causes []string
	counts := map[string]int{}
	for _, d := range cmp.Differences() {
		if d.Cause != "" && !c.Bool("strict") {
			key := d.Decoder + ": " + d.Cause
			if counts[key] == 0 {
				causes = append(causes, key)
			}
			counts[key] += d.Count
			continue
		}
		unexplained++
		if shrink != nil && unexplained <= shrinkAtMost {
			shrink(d)
		}
		fmt.Fprintf(out, "%s: %s: %s: %d, such as % x at %#x: kprobelab %v, %s %v\n",
			t.outStyle.bold(d.Decoder), d.Opcode, d.What, d.Count, d.Bytes(), d.At, d.Ours, d.Decoder, d.Theirs)
		fmt.Fprintf(out, "  kprobelab decode %s\n", hex.EncodeToString(d.Bytes()))
		if path := c.String("append"); path != "" && d.Cause == "" {
			if err := appendRegression(path, d); err != nil {
				return &failure{exitImage, err}
			}
		}
	}
	for _, key := range causes {
		fmt.Fprintf(out, "known: %s: %d\n", key, counts[key])
	}
	if unexplained > 0 {
		return &failure{exitRefused, fmt.Errorf("%d kinds of differences without a known cause", unexplained)}
	}
	fmt.Fprintln(out, "no differences without a known cause")
	return nil
}

// appendRegression adds a row in the corpus's form.
func appendRegression(path string, d *compare.Difference) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	i, err := decoder.Decode(d.Example)
	class := "-"
	if err == nil {
		class = i.Class.String()
	}
	_, err = fmt.Fprintf(f, "%-30s %2d  %-13s %s\n", hex.EncodeToString(d.Bytes()), d.Ours.Length, class, "!"+d.Decoder+" # "+d.Theirs.String())
	return errors.Join(err, f.Close())
}
