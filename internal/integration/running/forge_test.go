package running

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/mailbox"
	"kprobelab/internal/tinyprogram"
)

// A program of the guest cannot pass for init: not with init's calls, not from where init makes
// them, not by the call with which init fetches its commands.
func TestProgramsThatSpeakAsInit(t *testing.T) {
	k := boot(t, "6.1")
	header := make([]byte, mailbox.HeaderSize)
	require.NoError(t, k.Machine.ReadUser(mailbox.Addr, header))
	site, err := mailbox.Site(header)
	require.NoError(t, err)
	call := func(nr, rdi, rsi, rdx uint64) string {
		return fmt.Sprintf("mov $%#x,%%eax\nmovabs $%#x,%%rdi\nmov $%#x,%%rsi\nmov $%#x,%%rdx\nsyscall\n", nr, rdi, rsi, rdx)
	}
	const hello = uint64(tinyprogram.Data)
	end := call(1, 1, hello, 6) + "mov $0x5,%edi\nmov $0xe7,%eax\nsyscall"
	page := uint64(site) &^ 0xfff
	// The page of init's own call is mapped, and that instruction put there.
	there := "mov $0x32,%r10d\nmov $-1,%r8\nxor %r9d,%r9d\n" + call(9, page, 4096, 7) + fmt.Sprintf("mov $%#x,%%ebx\nmovl $0x90c3050f,(%%rbx)\n", uint64(site))
	at := func(nr, rdi, rsi, rdx uint64) string {
		return fmt.Sprintf("mov $%#x,%%eax\nmovabs $%#x,%%rdi\nmov $%#x,%%rsi\nmov $%#x,%%rdx\ncall *%%rbx\n", nr, rdi, rsi, rdx)
	}
	child := func(text string) string {
		return "mov $0x39,%eax\nsyscall\ntest %eax,%eax\njne parent\n" + text + "xor %edi,%edi\nmov $0xe7,%eax\nsyscall\nparent: xor %r10d,%r10d\nmov $-1,%rdi\nxor %esi,%esi\nxor %edx,%edx\nmov $0x3d,%eax\nsyscall\n"
	}
	for name, text := range map[string]string{
		"exit":                           call(0x6b700002, 99<<8, 0, 0),
		"exit_with_an_errno":             call(0x6b700002, 0, 2, 0),
		"output":                         call(0x6b700001, 1, hello, 6),
		"output_of_kernel_memory":        call(0x6b700001, 1, 0xffffffff81000000, 4096),
		"output_of_much":                 call(0x6b700001, 99, hello, 1<<30),
		"ready":                          call(0x6b700000, 99, 0, 0),
		"upper_half_of_the_number":       "mov $-1,%rax\nshl $0x20,%rax\nmov $0x6b700002,%ecx\nor %rcx,%rax\nmov $0x100,%edi\nxor %esi,%esi\nsyscall\n",
		"request_for_work":               call(110, mailbox.Magic, 0, 0),
		"exit_from_where_init_has_it":    there + at(0x6b700002, 99<<8, 0, 0),
		"output_from_where_init_has_it":  there + at(0x6b700001, 1, hello, 6),
		"request_from_there":             there + at(110, mailbox.Magic, 0, 0),
		"exit_of_a_child":                child(call(0x6b700002, 99<<8, 0, 0)),
		"requests_of_a_child_that_stays": "mov $0x39,%eax\nsyscall\ntest %eax,%eax\njne parent\nagain: " + call(110, mailbox.Magic, 0, 0) + "mov $0x18,%eax\nsyscall\njmp again\nparent: ",
		"request_of_a_child":             child(call(110, mailbox.Magic, 0, 0)),
	} {
		if testing.Short() && name != "exit" && name != "output_of_kernel_memory" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			k.restore()
			program, err := tinyprogram.Build([]byte("hello\n"), tinyprogram.Function{Name: "_start", Text: text + end})
			require.NoError(t, err)
			got := k.fed(program, "/bin/busybox", "sh", "-c", "cat >/tmp/forge; chmod +x /tmp/forge; exec /tmp/forge")
			require.Equal(t, ended{5, "hello\n", ""}, got)
			require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"))
		})
	}
}
