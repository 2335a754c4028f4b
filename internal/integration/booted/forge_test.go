package booted

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/boot"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/tinyprogram"
)

// A program of a guest under QEMU cannot speak as init does, even from an address where init makes its calls.
func TestProgramsThatSpeakAsInit(t *testing.T) {
	o := machine(t, "oracle")
	call := func(nr, rdi, rsi, rdx uint64, how string) string {
		return fmt.Sprintf("mov $%#x,%%eax\nmovabs $%#x,%%rdi\nmov $%#x,%%rsi\nmov $%#x,%%rdx\n%s\n", nr, rdi, rsi, rdx, how)
	}
	const hello, there = uint64(tinyprogram.Data), "call *%rbx"
	// Pages are mapped where init's call may be, with a call at each sixteenth byte; the argument
	// selects one of them.
	mapped := "mov 0x10(%rsp),%rdi\nmov (%rdi),%ebx\nmov %rbx,%r12\nand $-4096,%r12\nmov $0x32,%r10d\nmov $-1,%r8\nxor %r9d,%r9d\n" +
		"mov %r12,%rdi\nmov $0x1000,%esi\nmov $0x7,%edx\nmov $0x9,%eax\nsyscall\nmovl $0x90c3050f,(%rbx)\n"
	programs := map[string]string{
		"exit":             call(0x6b700002, 99<<8, 0, 0, "syscall"),
		"kernel_memory":    call(0x6b700001, 1, 0xffffffff81000000, 4096, "syscall"),
		"request":          call(110, mailbox.Magic, 0, 0, "syscall"),
		"exit_there":       mapped + call(0x6b700002, 99<<8, 0, 0, there),
		"kernel_there":     mapped + call(0x6b700001, 1, 0xffffffff81000000, 4096, there),
		"nothing_of_inits": mapped + call(0x6b710000, 99<<8, 0, 0, there),
		"request_there":    mapped + call(110, mailbox.Magic, 0, 0, there),
	}
	for name, text := range programs {
		b, err := tinyprogram.Build([]byte("hello\n"), tinyprogram.Function{Name: "_start", Text: text + call(1, 1, hello, 6, "syscall") + "mov $0x5,%edi\nmov $0xe7,%eax\nsyscall"})
		require.NoError(t, err)
		o.Files = append(o.Files, boot.Regular("/bin/"+name, 0o755, b))
	}
	require.NoError(t, boot.Boot(t.Context(), o, func(g *boot.Guest) error {
		site := g.Site()
		where := string([]byte{byte(site), byte(site >> 8), byte(site >> 16), byte(site >> 24)})
		require.NotContains(t, where, "\x00")
		for name := range programs {
			var out strings.Builder
			outcome, err := g.Do(mailbox.Command{Kind: mailbox.Exec, Args: []string{"/bin/" + name, where}}, func(_ int, b []byte) error {
				out.Write(b)
				return nil
			})
			require.NoError(t, err, name)
			require.Equal(t, 5, outcome.Code(), name)
			require.Equal(t, "hello\n", out.String(), name)
		}
		return nil
	}))
}
