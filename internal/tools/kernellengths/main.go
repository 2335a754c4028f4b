// Command kernellengths compares DecodeKernel with a release's own decoder
// (make decoder-kernel): a program that speaks the line protocol of docs/decoder.md.
//
//	kernellengths -profile NAME [-drawn N] [-seed N] [-record FILE] PROGRAM
//
// It asks about every enumerated string and about N drawn ones. It ends with 1 if one
// differs. -record writes the program's answers about the enumerated strings, for the
// test of package compare.
package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"kprobelab/decoder/compare"
	"kprobelab/profile"
)

func main() {
	name := flag.String("profile", "6.12", "the `PROFILE` whose decoder is compared")
	drawn := flag.Int("drawn", 1_000_000, "ask about `N` drawn strings, too")
	seed := flag.Uint64("seed", 1, "`SEED` of the drawn strings")
	record := flag.String("record", "", "write the answers about the enumerated strings to `FILE`")
	flag.Parse()
	if err := run(*name, *drawn, *seed, *record, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "kernellengths:", err)
		os.Exit(1)
	}
}

func run(name string, drawn int, seed uint64, record, program string) error {
	c, err := profile.Find(name)
	if err != nil {
		return err
	}
	if program == "" {
		return errors.New("no program to ask")
	}
	enumerated, err := ask(program, compare.Enumerate)
	if err != nil {
		return err
	}
	if record != "" {
		if err := compare.WriteLengths(record, enumerated); err != nil {
			return err
		}
	}
	draw := func(visit func([]byte)) { compare.Draw(seed, drawn, visit) }
	random, err := ask(program, draw)
	if err != nil {
		return err
	}
	differ := differing(&c.Decoder, compare.Enumerate, enumerated) + differing(&c.Decoder, draw, random)
	fmt.Printf("profile %s: %d enumerated and %d drawn strings, %d differ\n", name, len(enumerated), len(random), differ)
	if differ > 0 {
		return errors.New("the decoders differ")
	}
	return nil
}

// ask returns the program's answers about the strings.
func ask(program string, strings func(func([]byte))) ([]byte, error) {
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		w := bufio.NewWriter(in)
		strings(func(b []byte) { fmt.Fprintln(w, hex.EncodeToString(b)) })
		w.Flush()
		in.Close()
	}()
	lengths, err := read(out)
	return lengths, errors.Join(err, cmd.Wait())
}

func read(r io.Reader) (lengths []byte, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		length, _, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseUint(length, 10, 8)
		if err != nil {
			return nil, fmt.Errorf("the program answers %q", lines.Text())
		}
		lengths = append(lengths, byte(n))
	}
	return lengths, lines.Err()
}

// differing prints the first strings that differ, and returns how many do.
func differing(d *profile.Decoder, strings func(func([]byte)), want []byte) (differ int) {
	i := 0
	strings(func(b []byte) {
		if i < len(want) {
			if got := compare.KernelLength(b, d); got != want[i] {
				if differ++; differ <= 20 {
					fmt.Printf("%x: %d here, %d there\n", b, got, want[i])
				}
			}
		}
		i++
	})
	if i != len(want) {
		fmt.Printf("%d strings, %d answers\n", i, len(want))
		differ++
	}
	return differ
}
