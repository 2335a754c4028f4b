package transcripts

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/integration/oracle"
	"kprobelab/kprobes"
	"kprobelab/kprobes/slot"
	"kprobelab/kprobestest"
	"kprobelab/profile"
	"kprobelab/x86"
)

// replay is the test module rewritten in Go: the same steps, the same output.
type replay struct {
	t     *testing.T
	l     *kprobelab.Lab
	k     *kprobes.Kprobes
	lines []string

	hits, posts, entries, returns, faultsSeen int
	// logs are lines of the kernel log; planting and returning are the probes that
	// listset plants.
	logs      []string
	planting  []*kprobes.Kprobe
	returning []*kprobes.Kretprobe
}

func newReplay(t *testing.T, kernel string) *replay {
	rules, ok := profile.Named(kernel)
	require.True(t, ok)
	if rules.Resolve.SkipENDBR {
		// Such a kernel places the probe after the ENDBR of __switch_to, where
		// nothing refuses it. The guest's has none.
		rules.Kret.BlacklistSwitchTo = false
	}
	l := kprobestest.New(t, &kprobestest.Options{
		Rules: rules, CPUs: 2, Modules: []string{"../../../testdata/demo.ko"},
	}).Lab()
	r := &replay{t: t, l: l, k: l.Kprobes}
	r.k.OnLog(func(line string) {
		r.logs = append(r.logs, line)
		if strings.HasPrefix(line, "WARNING: ") {
			r.print("WARNING")
		}
	})
	return r
}

// TestTranscripts replays every transcript under each measured kernel's profile.
// See docs/spec 14.
func TestTranscripts(t *testing.T) {
	for _, folder := range folders {
		for name, run := range map[string]func(*replay){
			"handler_regs": (*replay).handlerRegs, "misuse": (*replay).misuse, "recursion_nmissed": (*replay).recursion,
			"fault_handler": (*replay).faults, "neighbours": (*replay).neighbours, "kprobes_list": (*replay).list,
		} {
			kernel := oracle.Kernels[folder]
			if absent[folder+" "+name] {
				continue
			}
			t.Run(kernel+"/"+name, func(t *testing.T) {
				b, err := os.ReadFile(golden(folder, name))
				require.NoError(t, err)
				r := newReplay(t, kernel)
				run(r)
				want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
				for i := range min(len(want), len(r.lines)) {
					require.Equal(t, want[i], r.lines[i], "line %d", i+1)
				}
				require.Len(t, r.lines, len(want))
			})
		}
	}
}

// print adds a line; runs of spaces are one.
func (r *replay) print(format string, args ...any) {
	r.lines = append(r.lines, strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "))
}

func (r *replay) at(name string) x86.Addr {
	s := r.l.Image.Lookup(name)
	require.NotEmpty(r.t, s, name)
	return s[0].Addr
}

func (r *replay) call(name string, arg int) uint64 {
	ax, err := r.l.Machine.Call(name, arg)
	require.NoError(r.t, err)
	return ax
}

// wait is wait_for_kprobe_optimizer, where the module calls it.
func (r *replay) wait() { require.NoError(r.t, r.l.Settle()) }

// isEntry is 1 for a probe that is in the hash table itself, and 0 for a
// member of an aggregate.
func (r *replay) isEntry(p *kprobes.Kprobe) int {
	if r.k.Find(p.Addr) == p {
		return 1
	}
	return 0
}

// context prints the kernel's context as a handler sees it.
func (r *replay) context() string {
	return fmt.Sprintf("irqs_disabled=%d preempt_count=0x%x", bit(r.k.IRQsDisabled()), r.k.PreemptCount())
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// code returns an error as the kernel's functions return it: 0, or the negative errno.
func code(err error) int {
	if err == nil {
		return 0
	}
	return -int(errno.Of(err))
}

// mode returns the mode of the probe at an address.
func (r *replay) mode(at x86.Addr) string {
	p := r.k.Find(at)
	if p == nil {
		return "none"
	}
	var b [1]byte
	require.NoError(r.t, r.l.Machine.ReadMem(at, b[:]))
	emul, boost := 0, 0
	if s, ok := p.Slot(); ok {
		if s.Emulation.Kind != slot.EmulateNone {
			emul = 1
		}
		if s.Boosted {
			boost = 1
		}
	}
	return fmt.Sprintf("flags=%s byte0=%02x emul=%d boost=%d", hex(uint64(p.Flags)), b[0], emul, boost)
}

// hex is a number as %#x prints it, in the module's own way for 0.
func hex(v uint64) string { return fmt.Sprintf("%#x", v) }

// where is an address as %pS prints it, without sizes.
func (r *replay) where(a x86.Addr) string {
	name, _, _ := strings.Cut(r.l.Machine.Symbolize(a), "/")
	return strings.Replace(name, "return_to_host+0x0", "CALLER", 1)
}

func set(a x86.Addr) string {
	if a == 0 {
		return "0"
	}
	return "set"
}

func ss(v uint64) string {
	if v == x86.KernelDS {
		return hex(v)
	}
	return "garbage"
}
