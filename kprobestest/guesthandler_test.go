package kprobestest_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kprobes"
	"kprobelab/kprobestest"
)

// handlersC are handlers as a kernel module has them. What they know of a probe
// and of an instance is documented with kprobes.RecordOwn and InstanceData.
const handlersC = `
struct pt_regs { unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss; };
struct instance { unsigned long ret_addr, private[3]; unsigned long began; };
unsigned long sizes, as_entered, returned;
int count_size(void *p, struct pt_regs *regs) { sizes += regs->si; return 0; }
int remember(struct instance *ri, struct pt_regs *regs) { ri->began = regs->di; return regs->di == 7; }
int compare(struct instance *ri, struct pt_regs *regs) { returned++; as_entered += regs->ax == ri->began + 1; regs->ax += 100; return 0; }
`

// TestModuleHandlers: the handlers of a compiled module see the
// registers, keep data from entry to return, refuse a call, and change a result.
func TestModuleHandlers(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to compile a module with")
	}
	dir := t.TempDir()
	src, obj := filepath.Join(dir, "handlers.c"), filepath.Join(dir, "handlers.o")
	require.NoError(t, os.WriteFile(src, []byte(handlersC), 0o600))
	out, err := exec.Command(gcc, "-O2", "-mcmodel=kernel", "-fno-pic", "-mno-red-zone", "-ffreestanding", "-c", "-o", obj, src).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, optimize := range []bool{false, true} {
		m := kprobestest.New(t, &kprobestest.Options{NoOptimize: !optimize, Modules: []string{obj}})
		variable := func(name string) uint64 {
			var b [8]byte
			require.NoError(t, m.Emu().ReadMem(m.Symbol(name).Addr, b[:]))
			return binary.LittleEndian.Uint64(b[:])
		}
		p := &kprobes.Kprobe{SymbolName: "snprintf", PreCode: m.Symbol("count_size").Addr}
		rp := &kprobes.Kretprobe{
			KP:          kprobes.Kprobe{SymbolName: "leaf"},
			HandlerCode: m.Symbol("compare").Addr, EntryCode: m.Symbol("remember").Addr, DataSize: 8,
		}
		require.NoError(t, m.Kprobes().RegisterKprobe(p))
		require.NoError(t, m.Kprobes().RegisterKretprobe(rp))
		m.Settle()
		buf := make([]byte, 64)
		for n := range 4 {
			m.Call("snprintf", buf, len(buf), "%d", 42)
			require.Equal(t, uint64(n+1+100), m.Call("leaf", n), "leaf(x) is x+1, and the handler adds to that")
			require.Equal(t, uint64(8), m.Call("leaf", 7), "refused by the entry handler")
		}
		require.Equal(t, uint64(4*64), variable("sizes"))
		require.Equal(t, uint64(4), variable("returned"))
		require.Equal(t, uint64(4), variable("as_entered"))
		m.Kprobes().UnregisterKprobe(p)
		m.Kprobes().UnregisterKretprobe(rp)
	}
}
