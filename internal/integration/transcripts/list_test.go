package transcripts

import (
	"os"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// The commands of kprobes_list.txt, which a shell ran.
const (
	listFile    = "/sys/kernel/debug/kprobes/list"
	enabledFile = "/sys/kernel/debug/kprobes/enabled"
	sysctlFile  = "/proc/sys/debug/kprobes-optimization"
	moduleFile  = "/proc/korct"
)

// list runs the shell's commands, which testdata has.
func (r *replay) list() {
	folder := ""
	for f, kernel := range oracle.Kernels {
		if kernel == r.k.Config().Name {
			folder = f
		}
	}
	b, err := os.ReadFile(golden(folder, "kprobes_list"))
	require.NoError(r.t, err)
	for _, line := range strings.Split(string(b), "\n") {
		commands, ok := strings.CutPrefix(line, "# ")
		if !ok {
			continue
		}
		r.print("%s", line)
		for _, c := range strings.Split(commands, ";") {
			r.shell(strings.Fields(c))
		}
		if strings.Contains(commands, "sleep") {
			for _, l := range r.logs {
				r.print("dmesg: %s", l)
			}
			r.logs = nil
		}
	}
	r.lines = sortLists(r.lines)
	r.drop()
}

func (r *replay) shell(c []string) {
	switch c[0] {
	case "cat":
		for _, file := range c[1:] {
			r.cat(file)
		}
	case "echo":
		if err := r.write(c[3], c[1]); err != nil {
			require.ErrorIs(r.t, err, errno.EINVAL)
			r.print("sh: write error: Invalid argument")
			r.print("[exit 1]")
		}
	case "sleep":
		r.wait()
	}
}

func (r *replay) cat(file string) {
	text := map[string]func() string{
		listFile: r.k.List, enabledFile: r.k.ReadEnabled, sysctlFile: r.k.ReadOptimization,
	}[file]()
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if file == listFile && line != "" {
			line = "ADDR" + line[16:]
		}
		if line != "" {
			r.print("%s", line)
		}
	}
}

func (r *replay) write(file, text string) error {
	switch {
	case file == enabledFile:
		return r.k.WriteEnabled(text)
	case file == sysctlFile:
		return r.k.WriteOptimization(text)
	case file == moduleFile && text == "listset":
		r.plantList()
	case file == moduleFile && text == "listclr":
		r.drop()
	}
	return nil
}

// plantList plants the probes that the module plants for listset.
func (r *replay) plantList() {
	on := func(name string, off x86.Addr) *kprobes.Kprobe {
		return &kprobes.Kprobe{Addr: r.at("demo_"+name) + off, PreHandler: r.count}
	}
	r.planting = []*kprobes.Kprobe{
		on("tgt", 0), on("tgt_nb", 0), on("tgt_nb", 4), on("ft", 0), on("tgt_jmp", 0), on("tgt_jmp", 0),
		on("tgt_call", 0), on("tgt_call", 0), on("tgt_jcc", 0),
	}
	r.planting[2].Flags = kprobes.FlagDisabled
	r.planting[6].Flags = kprobes.FlagDisabled
	r.planting[8].PostHandler = r.countPost
	for i, p := range r.planting {
		r.print("list reg L%d -> %d", i, code(r.k.RegisterKprobe(p)))
	}
	r.returning = []*kprobes.Kretprobe{r.counted("demo_tgt", 0), r.counted("demo_ft", 0), r.counted("vfs_read", 0)}
	r.returning[1].KP.Flags = kprobes.FlagDisabled
	for i, rp := range r.returning {
		r.print("LR%d -> %d", i, code(r.k.RegisterKretprobe(rp)))
	}
	r.wait()
}

func (r *replay) drop() {
	r.k.UnregisterKprobes(r.planting)
	r.k.UnregisterKretprobes(r.returning)
	r.planting, r.returning = nil, nil
	r.wait()
}

// sortLists sorts the lines of each list, which the kernel orders by address.
func sortLists(lines []string) []string {
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && strings.HasPrefix(lines[j], "ADDR") {
			j++
		}
		if j > i {
			slices.Sort(lines[i:j])
			i = j
		}
	}
	return lines
}
