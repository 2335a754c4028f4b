package transparent

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"kprobelab/internal/process"
	"kprobelab/internal/tools/conformance/verb"
	"kprobelab/internal/transparent"
	"kprobelab/kimage"
)

var errDiffer = fmt.Errorf("a probe makes a difference: %w", verb.ErrDiffer)

// Run runs the verb transparent.
func Run(args []string) error {
	return verb.Parts([]verb.Verb{
		{Name: "draw", Does: "write the places of a program: -kernel VMLINUZ -source NAME -o FOLDER PROGRAM", Run: draw},
		{Name: "judge", Does: "judge the answers of a booted kernel: FOLDER ANSWERS", Run: judgeFiles},
	}, args)
}

// known holds the facts about the program that are computed before the kernel is asked.
type known struct {
	Code   int
	Output string // stdout and stderr, as one pipe gets them
	// Places holds the offsets that are tried alone, and Hits the number of times that each is executed here.
	// SyscallBefore holds the places that follow a syscall instruction. NotAlone counts the offsets that are
	// not tried alone.
	Places        []uint32
	Hits          []uint64
	SyscallBefore []uint32
	NotAlone      int
	// AsCalls are the Places with a nop that becomes a call. Memory may differ there.
	AsCalls []uint32
}

const (
	libraryFunctions = 200
	// notAlone marks an offset in the list.
	notAlone = 1 << 31
	// asCall marks a nop that becomes a call.
	asCall = 1 << 30
)

func draw(args []string) error {
	f := flag.NewFlagSet("draw", flag.ExitOnError)
	kernel := f.String("kernel", "", "the kernel whose rules say what can be probed")
	source := f.String("source", "", "the name of the program's source")
	step := f.Int("step", 1, "of the places that are not executed here, try every so many-th alone")
	dir := f.String("o", "", "the folder that gets list and known")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() != 1 || *step < 1 {
		return flag.ErrHelp
	}
	img, err := kimage.Open(*kernel, nil)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(f.Arg(0))
	if err != nil {
		return err
	}
	r := &transparent.Runner{Rules: img.Profile(), File: &process.File{Name: "/bin/prog", Data: b}, Engine: "interp", Args: []string{"arg"}}
	places, err := r.Called(libraryFunctions, *source)
	if err != nil {
		return err
	}
	at := slices.Sorted(slices.Values(slices.Concat(places.At, places.AsCalls)))
	hits, err := r.Executions(at)
	if err != nil {
		return err
	}
	o, err := r.Run(nil, nil)
	if err != nil {
		return err
	}
	fmt.Printf("%d instructions, %d of them executed here, %d nops that become calls; %d more are refused, %v left out\n",
		len(at), len(hits), len(places.AsCalls), places.Refused, places.Harmful)
	k := known{Code: o.Code, Output: o.Stderr + o.Stdout} // the program writes to stderr before it flushes stdout
	var list []byte
	for _, at := range at {
		marked := uint32(at)
		if slices.Contains(places.AsCalls, at) {
			marked |= asCall
			k.AsCalls = append(k.AsCalls, uint32(at))
		}
		if hits[at] == 0 {
			if k.NotAlone++; k.NotAlone%*step != 0 {
				list = binary.LittleEndian.AppendUint32(list, marked|notAlone)
				continue
			}
		}
		list = binary.LittleEndian.AppendUint32(list, marked)
		k.Places, k.Hits = append(k.Places, uint32(at)), append(k.Hits, hits[at])
		if at >= 2 && r.Syscall(at-2) {
			k.SyscallBefore = append(k.SyscallBefore, uint32(at))
		}
	}
	k.NotAlone = len(at) - len(k.Places)
	if err := os.WriteFile(filepath.Join(*dir, "list"), list, 0o644); err != nil {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*dir, "known"), text, 0o644)
}

func judgeFiles(args []string) error {
	if len(args) != 2 {
		return flag.ErrHelp
	}
	b, err := os.ReadFile(filepath.Join(args[0], "known"))
	if err != nil {
		return err
	}
	var k known
	if err := json.Unmarshal(b, &k); err != nil {
		return err
	}
	answers, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer answers.Close()
	return k.judge(answers, os.Stdout)
}
