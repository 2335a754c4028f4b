//go:build linux

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
	"strings"
	"sync"
)

// kind is a way of attack, drawn as often as its weight says.
type kind struct {
	name   string
	weight int
	run    func(*tryOut)
}

// seeds are the files to damage.
type seeds struct {
	guest, module, config, cpuinfo, symbols, points []byte
	// object is a BPF object, nil without clang.
	object []byte
	// packs are files of an archive.
	packs [][]byte
	// images are others' images, by name; dumps are memory dumps.
	images, dumps []string
	// gcd is the offset of the guest's function gcd in its file, room its size in bytes, and
	// gcdAddr its address.
	gcd, room int
	gcdAddr   uint64
	// functions are the guest's.
	functions []string
}

const (
	guestFile  = "testdata/guest.elf"
	moduleFile = "testdata/demo.ko"
)

// prepare reads and makes the files.
func (a *attacker) prepare(images []string) (err error) {
	s := &a.seeds
	for _, name := range images {
		if strings.HasSuffix(name, ".core") {
			s.dumps = append(s.dumps, name)
		} else {
			s.images = append(s.images, name)
		}
	}
	if len(s.dumps) == 0 { // the dumps of make dumps
		if s.dumps, err = filepath.Glob(filepath.Join(a.root, ".cache/dumps/*.core")); err != nil {
			return err
		}
	}
	if s.guest, err = os.ReadFile(guestFile); err != nil {
		return fmt.Errorf("%w (run it in the project's folder)", err)
	}
	if s.module, err = os.ReadFile(moduleFile); err != nil {
		return err
	}
	if s.symbols, err = exec.Command(a.program, "symbols", guestFile).Output(); err != nil {
		return fmt.Errorf("%s symbols: %w", a.program, err)
	}
	if err := s.find(); err != nil {
		return err
	}
	s.config = []byte("#\n# Linux/x86 6.1.0 Kernel Configuration\n#\nCONFIG_SMP=y\nCONFIG_NR_CPUS=64\nCONFIG_KPROBES=y\nCONFIG_OPTPROBES=y\nCONFIG_PREEMPT=y\n# CONFIG_PREEMPT_NONE is not set\nCONFIG_LOCALVERSION=\"-x\"\nCONFIG_RETPOLINE=y\n")
	s.cpuinfo = []byte("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R)\nstepping\t: 7\nflags\t\t: fpu vme de pse tsc msr pae sse sse2 avx avx2 smap smep ibpb\nbugs\t\t: spectre_v1 spectre_v2 mds\n\n")
	s.points = []byte("gcd+0x5\nsnprintf\nvfs_read+0x0\n0xffffffff81000010\nnosuch\n")
	s.object = a.object()
	for _, more := range [][]string{nil, {"--entries"}} {
		b, err := a.pack(more...)
		if err != nil {
			return err
		}
		s.packs = append(s.packs, b)
	}
	a.kinds = kindsOf(s)
	return nil
}

// kindsOf lists all kinds of attacks.
func kindsOf(s *seeds) []kind {
	return []kind{
		{"damaged images", 30, damagedImage},
		{"damaged real images", 1, realImage},
		{"damaged modules", 8, damagedModule},
		{"damaged configurations", 5, damagedFile("--config", s.config)},
		{"damaged lists of features", 5, damagedFile("--cpu", s.cpuinfo)},
		{"damaged symbol lists", 5, damagedFile("--symbols", s.symbols)},
		{"damaged live texts", 5, damagedFile("--live-text", s.guest)},
		{"damaged lists of points", 4, damagedPoints},
		{"odd guest code", 25, oddCode},
		{"jumps into stubs", 15, intoStubs},
		{"command lines", 30, commandLine},
		{"files that change", 8, changingFile},
		{"damaged archives", 15, damagedArchive},
		{"functions of an image's own", 15, ownFunctions},
		{"damaged caches", 6, damagedCache},
		{"programs with goroutines that share a machine", 3, inProcess("shared")},
		{"programs that drop machines", 2, inProcess("dropped")},
		{"programs that call stubs", 4, inProcess("stubs")},
		{"programs by system calls", 40, systemCalls},
		{"damaged dumps", 40, damagedDump},
		{"handlers that close and call", 6, inProcess("closing")},
		{"mounts", 1, stress},
		{"types that lead to themselves", 50, oddTypes},
		{"types of DWARF that lead to themselves", 50, oddDWARF},
		{"damaged dumps of real kernels", 12, realDump},
		{"damaged BPF objects", 8, damagedObject},
		{"odd programs on a booted kernel", 6, oddPrograms},
		{"system calls of root on a booted kernel", 10, rootCalls},
		{"attacks inside a booted kernel", 12, attackInside},
		{"trees out of a booted kernel", 8, oddTrees},
		{"trees into a booted kernel", 4, takenAlong},
		{"questions of the page", 8, inProcess("page")},
		{"the page's server", 6, oddRequests},
		{"scripts that ask for much", 80, oddScripts},
		{"scenarios and their pictures", 30, oddScenarios},
	}
}

// find notes the guest kernel's functions, and where one of them is in the file.
func (s *seeds) find() error {
	f, err := elf.NewFile(bytes.NewReader(s.guest))
	if err != nil {
		return err
	}
	list, err := f.Symbols()
	if err != nil {
		return err
	}
	for _, y := range list {
		if elf.ST_TYPE(y.Info) == elf.STT_FUNC {
			s.functions = append(s.functions, y.Name)
		}
		if y.Name == "gcd" {
			section := f.Sections[y.Section]
			s.gcd, s.room, s.gcdAddr = int(y.Value-section.Addr+section.Offset), int(y.Size), y.Value
		}
	}
	slices.Sort(s.functions)
	return nil
}

// about asks all that one can ask of an image.
func (c *tryOut) about(image string, more ...string) {
	gcd := "gcd(12, 18)"
	all := [][]string{
		{"info", image}, {"info", "--json", image}, {"scan", image}, {"scan", "--tsv", image}, {"symbols", image},
		{"explain", image, "gcd+0x5"}, {"explain", "--json", image, "gcd"},
		{"run", "--timeout", "20s", "--kprobe", "gcd+0x5", "--kretprobe", "gcd", "--call", gcd, image},
		{"run", "--timeout", "20s", "--steps", "--no-post", "--kprobe", "snprintf", "--call", "snprintf(buf[64], 64, \"%d\", 42)", image},
		{"run", "--timeout", "20s", "--json", "-e", "p:x gcd a=%di", "--call", gcd, image},
	}
	for range 2 {
		c.run(nil, append(slices.Clone(all[c.rng.IntN(len(all))]), more...)...)
	}
}

func damagedImage(c *tryOut) { c.about(c.file("image", mutate(c.rng, c.seeds.guest))) }

// realImage damages an image of a distribution, mostly near its beginning.
func realImage(c *tryOut) {
	if len(c.seeds.images) == 0 {
		return
	}
	b, err := os.ReadFile(c.seeds.images[c.rng.IntN(len(c.seeds.images))])
	if err != nil {
		c.found("", err.Error())
		return
	}
	c.run(nil, "info", c.file("vmlinuz", mutate(c.rng, b)))
}

func damagedModule(c *tryOut) {
	c.about("-", "--module", c.file("m.ko", mutate(c.rng, c.seeds.module)))
}

func damagedFile(flag string, seed []byte) func(*tryOut) {
	return func(c *tryOut) {
		name := "f"
		if flag == "--cpu" {
			name = "./f"
		}
		c.file(name, mutateText(c.rng, seed))
		c.about("-", flag, name)
	}
}

func damagedPoints(c *tryOut) {
	b := mutateText(c.rng, c.seeds.points)
	if c.rng.IntN(2) == 0 {
		c.run(bytes.NewReader(b), "scan", "--points", "-", "-")
		return
	}
	c.run(nil, "check", c.file("points", b), "-")
}

// oddCode puts random code into the guest's function gcd, half of the time into
// text that the guest may write, and runs it probed.
func oddCode(c *tryOut) { c.runCode(snippet(c.rng, c.seeds.room)) }

// intoStubs makes gcd jump to, or call, an address at which the machine has code
// of its own, or near it, with garbage in the registers.
func intoStubs(c *tryOut) { c.runCode(jumpOut(c.rng)) }

func (c *tryOut) runCode(code []byte) {
	b := slices.Clone(c.seeds.guest)
	copy(b[c.seeds.gcd:c.seeds.gcd+c.seeds.room], code)
	if c.rng.IntN(2) == 0 {
		writable(b)
	}
	args := []string{"run", "--timeout", "20s", "--max-output", "100000", "--budget", fmt.Sprint(1 + c.rng.IntN(30_000_000)), "--cpus", fmt.Sprint(1 + c.rng.IntN(3))}
	ways := [][]string{
		{"--kprobe", "gcd"}, {"--kretprobe", "gcd"}, {"--kprobe", "gcd", "--no-post"}, {"-e", "p:x gcd a=+0(%di):string"}, {"-e", "r:y gcd $retval"},
		{"--steps", "--kprobe", "gcd"}, {"--json", "--kprobe", "gcd"}, {"--task", "gcd(1, 2); gcd(3, 4)"}, nil,
	}
	for range 1 + c.rng.IntN(2) {
		args = append(args, ways[c.rng.IntN(len(ways))]...)
	}
	c.run(nil, append(args, "--call", "gcd(12, 18)", "--call", "gcd(0xffffffff81000000, -1)", c.file("image", b))...)
}

// writable makes every segment of an ELF readable, writable and executable.
func writable(b []byte) {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return
	}
	const header, size, flags = 64, 56, 4
	for i := range f.Progs {
		b[header+i*size+flags] = 7
	}
}

// changingFile asks about a file that is written, cut and replaced meanwhile: an
// image, a module, a list, an archive's.
func changingFile(c *tryOut) {
	ways := []struct {
		good []byte
		ask  func(name string)
	}{
		{c.seeds.guest, func(name string) { c.about(name) }},
		{c.seeds.guest, func(name string) { c.about("-", "--live-text", name) }},
		{c.seeds.module, func(name string) { c.about("-", "--module", name) }},
		{c.seeds.symbols, func(name string) { c.about("-", "--symbols", name) }},
		{c.seeds.config, func(name string) { c.about("-", "--config", name) }},
		{c.seeds.cpuinfo, func(name string) { c.about("-", "--cpu", name) }},
		{c.seeds.points, func(name string) { c.run(nil, "check", name, "-") }},
		{c.seeds.packs[0], func(name string) {
			c.run(nil, "check", "--archive", filepath.Dir(name), c.file("points", c.seeds.points))
		}},
	}
	way := ways[c.rng.IntN(len(ways))]
	dir := filepath.Join(c.dir, "changing")
	_ = os.Mkdir(dir, 0o700)
	name := c.file("changing/6.1.0.abcdef01.kpack", way.good)
	seed := c.rng.Uint64()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		rng := newRand(seed)
		for {
			select {
			case <-done:
				return
			default:
			}
			switch rng.IntN(4) {
			case 0:
				_ = os.Truncate(name, int64(rng.IntN(2*len(way.good))))
			case 1:
				_ = os.WriteFile(name, mutate(rng, way.good), 0o600)
			case 2:
				_ = os.Remove(name)
				_ = os.WriteFile(name, way.good, 0o600)
			case 3:
				if f, err := os.OpenFile(name, os.O_WRONLY, 0); err == nil {
					_, _ = f.WriteAt(mutate(rng, way.good[:min(4096, len(way.good))]), int64(rng.IntN(min(4096, len(way.good)))))
					_ = f.Close()
				}
			}
		}
	})
	way.ask(name)
	close(done)
	wg.Wait()
}

// commandLine is words of the program in a random order, with values that are
// right, nearly right, and absurd.
func commandLine(c *tryOut) {
	commands := []string{"run", "uprobe", "scan", "info", "explain", "check", "decode", "symbols", "sample", "help", "version", "completion", "bench", "nosuch", ""}
	flags := []string{
		"--kprobe", "--kretprobe", "--call", "--task", "-e", "--cpus", "--seed", "--no-post", "--no-settle", "--steps", "--json", "--tsv", "--sysctl",
		"--profile", "--cpu", "--config", "--symbols", "--live-text", "--module", "--decoder", "--hex", "--points", "--list", "--padding", "--help", "--max-output", "--nosuch", "-", "--",
	}
	fn := c.seeds.functions[c.rng.IntN(len(c.seeds.functions))]
	values := []string{
		"gcd", "gcd+0x5", "gcd+0xffffffffffffffff", fn, fn + "+1", "0xffffffff81000010", "-1", "0", "64", "65", "99999999999999999999", "gcd(12, 18)",
		fn + "(1, 2, 3)", fn + "(buf[4096], 4096, \"%s%n\", -1)", "gcd(", "gcd(buf[99999999999])", "gcd({" + strings.Repeat("ff ", 1000) + "})", "gcd(&gcd+0x10, 'a')",
		"spin(10); gcd(1, 2)", "p:x gcd %di", "p:x/y " + fn + " +0(+8(%sp)):string", "r:z " + fn + " $retval:x8[64]", "-:x", "p gcd %nosuch", "6.1", "2.6.18", "7.3", "EPYC,-avx",
		"/dev/null", "/", "/proc/self/mem", "nosuch", "\x1b[31mred", "a\tb\nc", "é\xff", strings.Repeat("A", 100_000), "90", "cc 0f 0b", "debug.kprobes-optimization=0", "=", "%",
		"both", "tables", "x86asm", guestPath(c),
	}
	args := []string{commands[c.rng.IntN(len(commands))]}
	for range c.rng.IntN(7) {
		if c.rng.IntN(2) == 0 {
			args = append(args, flags[c.rng.IntN(len(flags))])
		} else {
			args = append(args, values[c.rng.IntN(len(values))])
		}
	}
	if args[0] == "run" || args[0] == "uprobe" || args[0] == "sample" {
		args = append(args, "--max-output=100000")
	}
	if args[0] == "run" || args[0] == "uprobe" {
		args = append(args, "--timeout=20s")
	}
	if args[0] == "bench" { // by itself it measures for minutes
		args = append(args, "--nosuch")
	}
	c.run(io.LimitReader(endless{c}, 1<<16), args...)
}

func guestPath(*tryOut) string {
	p, err := filepath.Abs(guestFile)
	if err != nil {
		return guestFile
	}
	return p
}

// endless is random input.
type endless struct{ c *tryOut }

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e.c.rng.Uint32())
	}
	return len(b), nil
}
