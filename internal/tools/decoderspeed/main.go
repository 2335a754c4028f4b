//go:build linux

// Command decoderspeed measures decoders on the same bytes in one run (make
// decoder-speed): nanoseconds an instruction, and memory.
//
//	decoderspeed FILE        all decoders, over the code of an ELF file
//	decoderspeed speed NAME  one of ours, over windows of 15 bytes on standard input
package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/arch/x86/x86asm"

	"kprobelab/decoder"
	"kprobelab/decoder/compare"
)

// passes is the number of times that each piece is decoded; the best pass counts.
const passes = 5

// mostWindows bounds how many instructions of the file are measured.
const mostWindows = 200_000

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "decoderspeed:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "speed" {
		return one(args[1])
	}
	if len(args) != 1 {
		return fmt.Errorf("want one ELF file")
	}
	windows, code, err := windowsOf(args[0])
	if err != nil {
		return err
	}
	fmt.Printf("%d instructions of %s\n\n| decoder | ns an instruction | KiB of memory |\n|---|---|---|\n", len(windows)/decoder.MaxInsnSize, filepath.Base(args[0]))
	for _, name := range ours {
		row("kprobelab, "+name.name, exec.Command(os.Args[0], "speed", name.name), windows)
	}
	for _, o := range []struct {
		name, program string
		args          []string
	}{
		{"Zydis, minimal mode", "zydis", nil},
		{"Zydis, with text", "zydis", []string{"text"}},
		{"Capstone, with text", "capstone", nil},
		{"LLVM, with text", "llvm", nil},
		{"iced as WebAssembly", "iced", nil},
		{"iced as WebAssembly, with text", "iced", []string{"text"}},
	} {
		path := ""
		for _, dir := range compare.Dirs() {
			if p, err := exec.LookPath(filepath.Join(dir, o.program)); err == nil && path == "" {
				path = p
			}
		}
		if path == "" {
			fmt.Printf("| %s | not here: make deps-test | |\n", o.name)
			continue
		}
		row(o.name, exec.Command(path, append([]string{"speed", strconv.Itoa(passes)}, o.args...)...), windows)
	}
	return objdump(code, len(windows)/decoder.MaxInsnSize)
}

// row prints what a program that answers "NANOSECONDS KIB" says.
func row(name string, cmd *exec.Cmd, windows []byte) {
	cmd.Stdin = bytes.NewReader(windows)
	out, err := cmd.Output()
	f := strings.Fields(string(out))
	if err != nil || len(f) != 2 {
		fmt.Printf("| %s | failed: %v | |\n", name, err)
		return
	}
	fmt.Printf("| %s | %s | %s |\n", name, f[0], f[1])
}

// windowsOf is the file's instructions, a window each, and the code that they cover.
func windowsOf(path string) (windows, code []byte, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	s := f.Section(".text")
	if s == nil {
		return nil, nil, fmt.Errorf("%s has no .text", path)
	}
	if code, err = s.Data(); err != nil {
		return nil, nil, err
	}
	at := 0
	for ; at+decoder.MaxInsnSize <= len(code) && len(windows) < mostWindows*decoder.MaxInsnSize; at++ {
		i, err := decoder.Decode(code[at:])
		if err != nil {
			continue
		}
		windows = append(windows, code[at:at+decoder.MaxInsnSize]...)
		at += i.Length - 1
	}
	return windows, code[:at], nil
}

var ours = []struct {
	name   string
	decode func(w []byte) int
}{
	{"the processor's view", func(w []byte) int {
		i, _ := decoder.Decode(w)
		return i.Length
	}},
	{"the kernel's view", func(w []byte) int {
		k, _ := decoder.DecodeKernel(w, nil)
		return k.Length
	}},
	{"with text", func(w []byte) int { return len(decoder.Text(w, 0)) }},
	{"x86asm, which it is built with", func(w []byte) int {
		i, _ := x86asm.Decode(w, 64)
		return i.Len
	}},
	{"x86asm, with text", func(w []byte) int {
		i, err := x86asm.Decode(w, 64)
		if err != nil {
			return 0
		}
		return len(x86asm.GNUSyntax(i, 0, nil))
	}},
}

// one measures a decoder of ours as the C programs do.
func one(name string) error {
	n := slices.IndexFunc(ours, func(o struct {
		name   string
		decode func(w []byte) int
	}) bool {
		return o.name == name
	})
	if n < 0 {
		return fmt.Errorf("there is no %q", name)
	}
	windows, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	before := peak("self") // with the windows
	const piece = 10_000 * decoder.MaxInsnSize
	total, sum := time.Duration(0), 0
	for at := 0; at < len(windows); at += piece {
		part := windows[at:min(len(windows), at+piece)]
		best := time.Duration(1 << 62)
		for range passes {
			began := time.Now()
			for w := part; len(w) >= decoder.MaxInsnSize; w = w[decoder.MaxInsnSize:] {
				sum += ours[n].decode(w[:decoder.MaxInsnSize])
			}
			best = min(best, time.Since(began))
		}
		total += best
	}
	if sum == 0 {
		return fmt.Errorf("nothing was decoded")
	}
	fmt.Printf("%.2f %d\n", float64(total.Nanoseconds())/float64(len(windows)/decoder.MaxInsnSize), max(peak("self")-before, 0))
	return nil
}

// peak is the most memory of a process in KiB, 0 for one that has gone. What getrusage
// says has the program in it that started the process.
func peak(pid string) (kib int64) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Sscan(rest, &kib)
		}
	}
	return kib
}

// objdump lists the same code; its processor time counts.
func objdump(code []byte, instructions int) error {
	path, err := exec.LookPath("objdump")
	if err != nil {
		fmt.Println("| objdump | not here | |")
		return nil
	}
	f, err := os.CreateTemp("", "decoderspeed")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(code); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	cmd := exec.Command(path, "-D", "-b", "binary", "-m", "i386:x86-64", f.Name())
	if err := cmd.Start(); err != nil {
		return err
	}
	most, ended := int64(0), make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				return err
			}
			running = false
		case <-time.After(5 * time.Millisecond):
			most = max(most, peak(strconv.Itoa(cmd.Process.Pid)))
		}
	}
	spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("| objdump, with text | %.2f | %d |\n", float64(spent.Nanoseconds())/float64(instructions), most)
	return nil
}
