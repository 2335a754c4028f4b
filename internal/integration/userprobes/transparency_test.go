package userprobes

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// compiled is a program of testdata with the C library in it. native is where the host finds it.
func compiled(t *testing.T, source string) (f *process.File, native string) {
	out := filepath.Join(t.TempDir(), "prog")
	cmd := exec.Command("gcc", "-O2", "-static", "-pthread", "-o", out, filepath.Join("testdata", source), "-lm")
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc to compile the program with")
	}
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	b, err := os.ReadFile(out)
	require.NoError(t, err)
	return &process.File{Name: "/bin/prog", Data: b}, out
}

// sources are the programs of testdata.
var sources = map[string]bool{"program.c": true, "signals.c": true, "threads.c": true, "processes.c": true}

// function is one of the program's, with the file offsets of its instructions.
type function struct {
	name         string
	entry        uint64
	own          bool // not the C library's
	instructions []uint64
}

// functionsOf are the program's functions, each place once.
func functionsOf(t *testing.T, f *process.File, c *profile.Config) []function {
	h, err := elf.NewFile(bytes.NewReader(f.Data))
	require.NoError(t, err)
	symbols, err := h.Symbols()
	require.NoError(t, err)
	var list []function
	seen := map[uint64]bool{}
	source := ""
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FILE {
			source = s.Name
		}
		section := int(s.Section)
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Size == 0 || section >= len(h.Sections) || seen[s.Value] {
			continue
		}
		seen[s.Value] = true
		in := h.Sections[section]
		fn := function{name: s.Name, entry: s.Value - in.Addr + in.Offset, own: sources[source] || s.Name == "main"}
		for at := fn.entry; at < fn.entry+s.Size; {
			k, err := decoder.DecodeKernel(f.Data[at:], &c.Decoder)
			if err != nil {
				break
			}
			fn.instructions = append(fn.instructions, at)
			at += uint64(k.Length)
		}
		list = append(list, fn)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].entry < list[j].entry })
	return list
}

// outcome is what a run shows from outside, and all that is in memory.
type outcome struct {
	code           int
	signal         process.Signal
	stdout, stderr string
	memory         [sha256.Size]byte
}

// runner runs the program.
type runner struct {
	t    *testing.T
	c    *profile.Config
	file *process.File
	name string // of the engine
	args []string
	seed int64
	// returns are functions whose returns are probed.
	returns []uint64
}

// run runs it with probes at these places, and says which of them were hit.
func (r *runner) run(at []uint64, hits map[uint64]uint64) outcome {
	e, err := engine.Named(r.name)
	require.NoError(r.t, err)
	k := userprobe.New(r.c)
	consumers := make([]userprobe.Consumer, len(at))
	for i, offset := range at {
		require.NoError(r.t, k.Register(r.file, offset, 0, &consumers[i]))
	}
	calls := make([]userprobe.Consumer, len(r.returns))
	for i, offset := range r.returns {
		calls[i].Returned = func(x86.Addr, *x86.PtRegs) {}
		require.NoError(r.t, k.Register(r.file, offset, 0, &calls[i]))
	}
	p, err := process.New(process.Config{
		Program: r.file, Args: append([]string{"prog"}, r.args...), Env: []string{"NAME=value"}, Tracer: k, Options: machine.Options{Budget: 50_000_000, Seed: r.seed},
		Files: []*process.File{{Name: "/data", Data: []byte("first line\nname 42\nthird\n")}},
	}, e.New)
	require.NoError(r.t, err)
	defer p.Close()
	x, err := p.Run()
	require.NoError(r.t, err, "probes at %#x", at)
	for i := range consumers {
		if n := consumers[i].Hits; n > 0 && hits != nil {
			hits[at[i]] += n
		}
	}
	for i := range calls {
		require.NotZero(r.t, calls[i].Hits, "returns of %#x", r.returns[i])
		require.LessOrEqual(r.t, calls[i].Hits, calls[i].Returns) // a forked process returns, too
		require.Zero(r.t, calls[i].Missed)
		k.Unregister(r.file, r.returns[i], &calls[i])
	}
	o := outcome{code: x.Code, signal: x.Signal}
	out, _ := p.Stdout()
	o.stdout = string(out)
	out, _ = p.Stderr()
	o.stderr = string(out)
	for i := range consumers {
		k.Unregister(r.file, at[i], &consumers[i]) // so that no int3 is left in memory
	}
	h := sha256.New()
	for _, v := range p.Maps() {
		if v.Name == "[uprobes]" || v.Prot == 0 {
			continue
		}
		b := make([]byte, v.Len())
		require.NoError(r.t, p.Read(v.Start, b))
		require.NoError(r.t, binary.Write(h, binary.LittleEndian, uint64(v.Start)))
		h.Write(b)
	}
	h.Sum(o.memory[:0])
	return o
}

// probable are the places that the kernel accepts and that do no harm by a hazard of
// docs/uprobes.md; refused and harmful count the others.
func (r *runner) probable(list []uint64) (good []uint64, refused int, harmful map[uprobes.Hazard]int) {
	harmful = map[uprobes.Hazard]int{}
	for _, at := range list {
		a := uprobes.Analyze(r.file.Data[at:at+uprobes.InsnSize], x86.Addr(at%process.PageSize), r.c)
		switch h := userprobe.HazardAt(r.c, r.file, at); {
		case a.Errno == errno.ENOTSUPP, a.Errno == errno.ENOEXEC:
			refused++
		case h != "":
			harmful[h]++
		default:
			good = append(good, at)
		}
	}
	return good, refused, harmful
}

// timeLimit is how long instructions are tried one at a time, by the rules of each release; 0 for
// as long as it takes.
func timeLimit(t *testing.T) time.Duration {
	text := os.Getenv("KPROBELAB_MINUTES")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return time.Duration(n) * time.Minute
}

// Rule: with probes on every instruction of a program, and of 200 functions of libc that it
// calls, output, exit code and memory are the same.
func TestTransparency(t *testing.T) {
	whole := os.Getenv("KPROBELAB_SOAK") != ""
	releases := []string{"6.1"}
	if whole {
		releases = []string{"6.1", "6.12", "7.3"}
	}
	f, _ := compiled(t, "program.c")
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			c, ok := profile.Named(release)
			require.True(t, ok)
			r := &runner{t: t, c: c, file: f, name: "interp", args: []string{"arg"}}
			want := r.run(nil, nil)
			require.Equal(t, 9, want.code, "%s%s", want.stdout, want.stderr)
			all := functionsOf(t, f, c)
			var entries []uint64
			for _, fn := range all {
				entries = append(entries, fn.entry)
			}
			entries, _, _ = r.probable(entries)
			called := map[uint64]uint64{}
			require.Equal(t, want, r.run(entries, called))

			var places []uint64
			functions := 0
			for _, fn := range all {
				if called[fn.entry] > 0 && (fn.own || functions < 200) {
					places = append(places, fn.instructions...)
					if !fn.own {
						functions++
					}
				}
			}
			require.Equal(t, 200, functions)
			places, refused, harmful := r.probable(places)
			executed := map[uint64]uint64{}
			require.Equal(t, want, r.run(places, executed), "all at once")
			for _, other := range engine.Names() {
				if other != r.name {
					on := &runner{t: t, c: c, file: f, name: other, args: r.args}
					plain := on.run(nil, nil)
					require.Equal(t, want.stdout, plain.stdout)
					require.Equal(t, plain, on.run(places, nil), "all at once on %s", other)
				}
			}
			step := 1
			switch {
			case testing.Short():
				step = 200
			case !whole:
				step = 40
			}
			one, alone := 0, 0
			var met []uint64
			began, limit := time.Now(), timeLimit(t)
			for _, at := range places {
				if executed[at] == 0 {
					continue // its int3 is met by nobody
				}
				if one++; one%step != 0 {
					continue
				}
				met = append(met, at)
			}
			// In an order that is no order of theirs, for a run may end before all are tried.
			rand.New(rand.NewPCG(1, 0)).Shuffle(len(met), func(i, j int) { met[i], met[j] = met[j], met[i] })
			for _, at := range met {
				if limit > 0 && time.Since(began) > limit {
					break
				}
				alone++
				require.Equal(t, want, r.run([]uint64{at}, nil), "at %#x", at)
			}
			t.Logf("%d instructions of %d functions of libc and of the program: %d executed, %d tried one at a time; %d more refused, %v left out",
				len(places), functions, len(executed), alone, refused, harmful)
		})
	}
}
