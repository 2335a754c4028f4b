package process_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/tinyprogram"
	"kprobelab/machine"
)

// build is a program of one function.
func build(t testing.TB, text string) *process.File {
	b, err := tinyprogram.Build([]byte("hello\n\x00/data"), tinyprogram.Function{Name: "_start", Text: text})
	require.NoError(t, err)
	return &process.File{Name: "/bin/prog", Data: b}
}

// onEngines runs a program on each engine of the build.
func onEngines(t *testing.T, c process.Config, check func(t *testing.T, p *process.Process, x process.Exit, err error)) {
	for _, name := range engine.Names() {
		t.Run(name, func(t *testing.T) {
			e, err := engine.Named(name)
			require.NoError(t, err)
			p, err := process.New(c, e.New)
			require.NoError(t, err)
			defer p.Close()
			x, err := p.Run()
			check(t, p, x, err)
		})
	}
}

// exit ends a program with rdi.
const exit = "\nmov $0x3c,%eax\nsyscall"

// call is a system call of up to three arguments.
func call(args ...string) string {
	var b strings.Builder
	for i, reg := range []string{"%eax", "%edi", "%esi", "%edx"}[:len(args)] {
		b.WriteString("mov $" + args[i] + "," + reg + "\n")
	}
	return b.String() + "syscall\n"
}

const (
	removable = "mov $0x642f,%eax\nshl $0x20,%rax\nmov $0x706d742f,%ecx\nadd %rcx,%rax\npush %rax\nmov %rsp,%rbx\nmov %rbx,%rdi\nmov $0x1ff,%esi\nmov $0x53,%eax\nsyscall\n"
	removed   = "mov %rbx,%rdi\nmov $0x54,%eax\nsyscall\n"
)

// signalled makes a child that has an exit signal, and waits for it.
func signalled(signal string) string {
	return call("0x38", signal, "0") + "test %eax,%eax\nje out\nxor %r10d,%r10d\nmov $-1,%rdi\nxor %esi,%esi\nmov $0x40000000,%edx\nmov $0x3d,%eax\nsyscall\nout: xor %edi,%edi" + exit
}

func TestProgram(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		code   int
		signal process.Signal
		stdout string
	}{
		"exit_code":                   {text: "mov $0x107,%edi" + exit, code: 7},
		"write":                       {text: call("1", "1", "0x402000", "6") + "mov %eax,%edi" + exit, code: 6, stdout: "hello\n"},
		"write_of_what_is_not_mapped": {text: call("1", "1", "0x10000", "6") + "neg %eax\nmov %eax,%edi" + exit, code: 14},
		"write_to_no_descriptor":      {text: call("1", "9", "0x402000", "6") + "neg %eax\nmov %eax,%edi" + exit, code: 9},
		"read_of_stdin":               {text: call("0", "0", "0x402000", "9") + "mov %eax,%ebx\n" + call("1", "1", "0x402000", "4") + "mov %ebx,%edi" + exit, code: 4, stdout: "typed"[:4]},
		"open_of_a_file":              {text: call("2", "0x402007", "0") + "mov %eax,%edi" + exit, code: 3},
		"open_for_writing":            {text: call("2", "0x402007", "1") + "neg %eax\nmov %eax,%edi" + exit, code: 13},
		"open_of_no_file":             {text: call("2", "0x402000", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 2},
		"unknown_system_call":         {text: call("0x3e7") + "neg %eax\nmov %eax,%edi" + exit, code: 38},
		"rcx_is_the_return_address":   {text: call("0x27") + "sub $0x401007,%ecx\nmov %ecx,%edi" + exit, code: 0},
		"mmap_of_too_much":            {text: "mov $0x22,%r10d\nmov $0x1,%esi\nshl $0x2f,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nmov $0x3,%edx\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 12},
		"reserved_terabytes":          {text: "mov $0x22,%r10d\nmov $0x1,%esi\nshl $0x2c,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nmov $0x3,%edx\nsyscall\nmov %rax,%rbx\nmov $0x1,%ecx\nshl $0x2b,%rcx\nincb (%rbx)\nincb (%rbx,%rcx)\nmov (%rbx,%rcx),%edi\nadd (%rbx),%edi" + exit, code: 2},
		"reserved_for_nobody":         {text: "mov $0x4022,%r10d\nmov $0x40000000,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nxor %edx,%edx\nsyscall\nmov (%rax),%edi" + exit, signal: process.SIGSEGV},
		"reserved_then_allowed":       {text: "mov $0x4022,%r10d\nmov $0x40000000,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nxor %edx,%edx\nsyscall\nmov %rax,%rdi\nmov $0x1000,%esi\nmov $0x3,%edx\nmov $0xa,%eax\nsyscall\nmovb $0x5,0xfff(%rdi)\nmovzbl 0xfff(%rdi),%edi" + exit, code: 5},
		"reserved_beside_allowed":     {text: "mov $0x4022,%r10d\nmov $0x40000000,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nxor %edx,%edx\nsyscall\nmov %rax,%rdi\nmov $0x1000,%esi\nmov $0x3,%edx\nmov $0xa,%eax\nsyscall\nmovb $0x5,0x1000(%rdi)" + exit, signal: process.SIGSEGV},
		"system_call_into_reserved":   {text: "mov $0x22,%r10d\nmov $0x40000000,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nmov $0x3,%edx\nsyscall\nlea 0xfffff(%rax),%rsi\nxor %edi,%edi\nmov $0x9,%edx\nxor %eax,%eax\nsyscall\nmovzbl 0x1(%rsi),%edi" + exit, code: 'y'},
		"forgotten_memory_is_zero":    {text: "mov $0x22,%r10d\nmov $0x40000,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nmov $0x3,%edx\nsyscall\nmov %rax,%rdi\nmovb $0x5,(%rdi)\nmov $0x1c,%eax\nmov $0x4,%edx\nsyscall\nmovzbl (%rdi),%edi" + exit, code: 0},
		"mmap_is_zero":                {text: "mov $0x22,%r10d\n" + call("9", "0", "0x1000", "3") + "mov 0x10(%rax),%edi" + exit, code: 0},
		"fault":                       {text: "mov 0x10(%rdi),%eax", signal: process.SIGSEGV},
		"no_instruction":              {text: "ud2", signal: process.SIGILL},
		"own_int3":                    {text: "int3", signal: process.SIGTRAP},
		"division":                    {text: "xor %ecx,%ecx\ndiv %ecx", signal: process.SIGFPE},
		"halt_is_privileged":          {text: "hlt", signal: process.SIGSEGV},
		"kill_of_itself":              {text: call("0x3e", "0x64", "6"), signal: process.SIGABRT},
		"kill_of_another":             {text: call("0x3e", "0x65", "6") + "neg %eax\nmov %eax,%edi" + exit, code: 3},
		"jump_to_the_kernel":          {text: "mov $0xffffffffc0000010,%rax\njmp *%rax", signal: process.SIGSEGV},
		"handler_of_kill":             {text: "mov $0x8,%r10d\n" + call("13", "9", "0x402000", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"sigset_of_another_size":      {text: "mov $0x4,%r10d\n" + call("13", "10", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"small_alternate_stack":       {text: "push $0x64\npush $0x0\npush $0x10000\nmov $0x83,%eax\nmov %rsp,%rdi\nxor %esi,%esi\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 12},
		"handler_without_a_restorer":  {text: "push $0x0\npush $0x0\npush $0x0\npush $0x401000\nmov $0x8,%r10d\nmov $0xd,%eax\nmov $0x8,%edi\nmov %rsp,%rsi\nxor %edx,%edx\nsyscall\nxor %ecx,%ecx\ndiv %ecx", signal: process.SIGSEGV},
		"sigreturn_from_no_frame":     {text: "mov $0x10008,%esp\nmov $0xf,%eax\nsyscall", signal: process.SIGSEGV},
		"blocked_fault_kills":         {text: "push $-0x1\nmov $0x8,%r10d\nmov $0xe,%eax\nmov $0x2,%edi\nmov %rsp,%rsi\nxor %edx,%edx\nsyscall\nmov (%rdx),%eax", signal: process.SIGSEGV},
		"ignored_signal":              {text: call("0x3e", "0x64", "17") + "mov %eax,%edi" + exit, code: 0},
		"clone_of_a_namespace":        {text: call("0x38", "0x10000011", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 38},
		"handlers_without_memory":     {text: call("0x38", "0x800", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"thread_without_handlers":     {text: call("0x38", "0x10100", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"processes_that_do_not_fit":   {text: "again: " + call("0x39") + "test %eax,%eax\nje child\njns again\nneg %eax\nmov %eax,%edi" + exit + "\nchild: xor %edi,%edi" + exit, code: 12},
		// The parent gets no signal of such a number, and waits with __WALL.
		"child_with_the_last_signal":        {text: signalled("0x40"), signal: 64},
		"child_with_a_signal_past_the_last": {text: signalled("0x41"), code: 0},
		"child_with_signal_128":             {text: signalled("0x80"), code: 0},
		"child_with_signal_200":             {text: signalled("0xc8"), code: 0},
		"child_with_signal_255":             {text: signalled("0xff"), code: 0},
		"child_with_no_signal":              {text: signalled("0x0"), code: 0},
		"wait_for_nobody":                   {text: "xor %r10d,%r10d\n" + call("0x3d", "0", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 10},
		"wait_with_unknown_options":         {text: call("0x3d", "0", "0", "0x100") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"wait_to_where_nothing_is":          {text: call("0x39") + "test %eax,%eax\nje child\nxor %r10d,%r10d\nxor %edi,%edi\nmov $0x10000,%esi\nxor %edx,%edx\nmov $0x3d,%eax\nsyscall\nneg %eax\nmov %eax,%edi\nchild: " + exit[1:], code: 14},
		"exec_of_no_file":                   {text: call("0x3b", "0x402001", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 2},
		"exec_of_no_program":                {text: call("0x3b", "0x402007", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 8},
		"exec_of_no_name":                   {text: call("0x3b", "0x10", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 14},
		"exec_with_no_arguments":            {text: call("0x3b", "0x402007", "0x10", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 14},
		"orphan":                            {text: call("0x39") + "test %eax,%eax\nmov $0x7,%edi\njne out\npush $0x0\npush $0x1\nmov %rsp,%rdi\nxor %esi,%esi\nmov $0x23,%eax\nsyscall\n" + call("1", "1", "0x402000", "6") + "mov $0x3,%edi\nout: " + exit[1:], code: 7, stdout: "hello\n"},
		"orphan_that_waits":                 {text: call("0x39") + "test %eax,%eax\nmov $0x7,%edi\njne out\nmov $0x22,%eax\nsyscall\nout: " + exit[1:], code: 7},
		"halt_of_a_child":                   {text: call("0x39") + "test %eax,%eax\njne parent\nhlt\nparent: sub $0x8,%rsp\nxor %r10d,%r10d\nmov %eax,%edi\nmov %rsp,%rsi\nxor %edx,%edx\nmov $0x3d,%eax\nsyscall\nmov (%rsp),%edi" + exit, code: 11},
		"kill_of_everybody":                 {text: call("0x39") + "test %eax,%eax\nje child\n" + call("0x3e", "0xffffffff", "9") + "mov %eax,%edi" + exit + "\nchild: mov $0x22,%eax\nsyscall", code: 0},
		"futex_that_is_not_aligned":         {text: call("0xca", "0x402001", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 22},
		"futex_of_another_value":            {text: "xor %r10d,%r10d\n" + call("0xca", "0x402000", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 11},
		"futex_for_a_time":                  {text: "push $0x5\npush $0x0\nmov %rsp,%r10\n" + call("0xca", "0x402004", "0", "0x2f000a6f") + "neg %eax\nmov %eax,%edi" + exit, code: 110},
		"sleep":                             {text: "push $0x5\npush $0x3\nmov %rsp,%rdi\nxor %esi,%esi\nmov $0x23,%eax\nsyscall\nmov %eax,%edi" + exit, code: 0},
		"too_many_threads":                  {text: "again: " + call("0x38", "0x10900", "0x402f00") + "test %eax,%eax\nje again\njns again\nneg %eax\nmov %eax,%edi\nmov $0xe7,%eax\nsyscall", code: 11},
		// What goes into a pipe comes out of it, waits for room and for bytes, and ends with its writers.
		"pipe":                 {text: "sub $0x10,%rsp\nmov %rsp,%rdi\nmov $0x16,%eax\nsyscall\nmov 0x4(%rsp),%edi\nmov $0x402000,%esi\nmov $0x3,%edx\nmov $0x1,%eax\nsyscall\nmov (%rsp),%edi\nlea 0x8(%rsp),%rsi\nmov $0x9,%edx\nxor %eax,%eax\nsyscall\nmov %eax,%edi" + exit, code: 3},
		"pipe_without_writers": {text: "sub $0x10,%rsp\nmov %rsp,%rdi\nmov $0x16,%eax\nsyscall\nmov 0x4(%rsp),%edi\nmov $0x3,%eax\nsyscall\nmov (%rsp),%edi\nlea 0x8(%rsp),%rsi\nmov $0x9,%edx\nxor %eax,%eax\nsyscall\nmov %eax,%edi" + exit, code: 0},
		"pipe_without_readers": {text: "sub $0x10,%rsp\nmov %rsp,%rdi\nmov $0x16,%eax\nsyscall\nmov (%rsp),%edi\nmov $0x3,%eax\nsyscall\nmov 0x4(%rsp),%edi\nmov $0x402000,%esi\nmov $0x3,%edx\nmov $0x1,%eax\nsyscall", signal: process.SIGPIPE},
		"pipe_from_a_child":    {text: "sub $0x10,%rsp\nmov %rsp,%rdi\nmov $0x16,%eax\nsyscall\nmov $0x39,%eax\nsyscall\ntest %eax,%eax\njne reader\nmov 0x4(%rsp),%edi\nmov $0x402000,%esi\nmov $0x5,%edx\nmov $0x1,%eax\nsyscall\nxor %edi,%edi" + exit + "\nreader: mov (%rsp),%edi\nlea 0x8(%rsp),%rsi\nmov $0x9,%edx\nxor %eax,%eax\nsyscall\nmov %eax,%edi" + exit, code: 5},
		"dup2_of_stdout":       {text: call("33", "1", "9") + call("1", "9", "0x402000", "6") + "mov %eax,%edi" + exit, code: 6, stdout: "hello\n"},
		"dup2_of_nothing":      {text: call("33", "8", "9") + "neg %eax\nmov %eax,%edi" + exit, code: 9},
		"write_after_close":    {text: call("3", "1") + call("1", "1", "0x402000", "6") + "neg %eax\nmov %eax,%edi" + exit, code: 9},
		"seek_of_a_pipe":       {text: call("8", "0", "0", "0") + "neg %eax\nmov %eax,%edi" + exit, code: 29},
		"status_flags":         {text: call("72", "1", "3") + "and $0x3,%eax\nmov %eax,%edi" + exit, code: 1},
		// The folder /tmp/d is made, used and removed.
		"removed_working_folder":      {text: removable + "mov %rbx,%rdi\nmov $0x50,%eax\nsyscall\n" + removed + "sub $0x100,%rsp\nmov $0x64,%edi\nneg %rdi\nlea 0x7(%rbx),%rsi\nmov %rsp,%rdx\nmov $0x1000,%r10d\nmov $0x106,%eax\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 0},
		"entries_of_a_removed_folder": {text: removable + "mov %rbx,%rdi\nxor %esi,%esi\nmov $0x2,%eax\nsyscall\nmov %eax,%r12d\n" + removed + "sub $0x100,%rsp\nmov %r12d,%edi\nmov %rsp,%rsi\nmov $0x100,%edx\nmov $0xd9,%eax\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 2},
		"epoll_of_itself":             {text: "sub $0x10,%rsp\nmov $0x1,%eax\nmov %rax,(%rsp)\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%ebx\nmov %ebx,%edi\nmov $0x1,%esi\nmov %ebx,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 22},
		"epolls_in_a_circle":          {text: "sub $0x10,%rsp\nmov $0x1,%eax\nmov %rax,(%rsp)\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%ebx\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%r12d\nmov %ebx,%edi\nmov $0x1,%esi\nmov %r12d,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\nmov %r12d,%edi\nmov $0x1,%esi\nmov %ebx,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 40},
		"epolls_in_a_row":             {text: "sub $0x10,%rsp\nmov $0x1,%eax\nmov %rax,(%rsp)\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%ebx\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%r12d\nxor %edi,%edi\nmov $0x123,%eax\nsyscall\nmov %eax,%r13d\nmov %ebx,%edi\nmov $0x1,%esi\nmov %r12d,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\nmov %r12d,%edi\nmov $0x1,%esi\nmov %r13d,%edx\nmov %rsp,%r10\nmov $0xe9,%eax\nsyscall\nneg %eax\nmov %eax,%edi" + exit, code: 40},
		"mremap_moves":                {text: "mov $0x22,%r10d\n" + call("9", "0", "0x1000", "3") + "movb $0x7,0x5(%rax)\nmov %rax,%rdi\nmov $0x1000,%esi\nmov $0x20000,%edx\nmov $0x1,%r10d\nmov $0x19,%eax\nsyscall\nmovb $0x1,0x1ffff(%rax)\nmovzbl 0x5(%rax),%edi" + exit, code: 7},
		"folder_that_is_not_there":    {text: call("80", "0x402007") + "neg %eax\nmov %eax,%edi" + exit, code: 20},
		"arguments_on_the_stack":      {text: "mov (%rsp),%rdi" + exit, code: 2},
		"text_cannot_be_written":      {text: "mov $0x401000,%eax\nmov %eax,(%rax)", signal: process.SIGSEGV},
	} {
		t.Run(name, func(t *testing.T) {
			onEngines(t, process.Config{
				Program: build(t, c.text), Args: []string{"prog", "x"}, Stdin: []byte("typed"[:4]),
				Files: []*process.File{{Name: "/data", Data: []byte("content")}},
			}, func(t *testing.T, p *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Equal(t, c.signal, x.Signal, "at %#x", x.Regs.IP)
				require.Equal(t, c.code, x.Code)
				out, lost := p.Stdout()
				require.Equal(t, c.stdout, string(out))
				require.Zero(t, lost)
			})
		})
	}
}

func TestBounds(t *testing.T) {
	t.Run("touched_memory", func(t *testing.T) {
		onEngines(t, process.Config{Program: build(t, "mov $0x22,%r10d\nmov $0x1,%esi\nshl $0x2c,%rsi\nmov $0x9,%eax\nxor %edi,%edi\nmov $0x3,%edx\nsyscall\nagain: incb (%rax)\nadd $0x10000,%rax\njmp again")},
			func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
				require.EqualError(t, err, "the program uses more memory than a program may (256 MB, all processes together)")
			})
	})
	t.Run("mappings_here_and_there", func(t *testing.T) { // each in a window of its own, of which there are not so many
		onEngines(t, process.Config{Program: build(t, "mov $0x22,%r10d\nmov $0x7fff,%edi\nshl $0x1c,%rdi\nmov $0x32,%r10d\nagain: mov $0x10000000,%rax\nadd %rax,%rdi\nmov $0x1000,%esi\nmov $0x9,%eax\nmov $0x3,%edx\nsyscall\ntest %rax,%rax\njns again\nneg %eax\nmov %eax,%edi"+exit)},
			func(t *testing.T, _ *process.Process, x process.Exit, err error) {
				require.NoError(t, err)
				require.Equal(t, 12, x.Code)
			})
	})
	t.Run("instructions", func(t *testing.T) {
		onEngines(t, process.Config{Program: build(t, "again: jmp again"), Options: machine.Options{Budget: 10000}},
			func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
				require.ErrorIs(t, err, machine.ErrBudget)
			})
	})
	t.Run("system_calls", func(t *testing.T) {
		onEngines(t, process.Config{Program: build(t, "again: "+call("0x27")+"jmp again"), Options: machine.Options{Budget: 100000}},
			func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
				require.ErrorIs(t, err, machine.ErrBudget)
			})
	})
	t.Run("processes", func(t *testing.T) {
		onEngines(t, process.Config{Program: build(t, "again: "+call("0x39")+"jmp again")},
			func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
				require.EqualError(t, err, "the program has made more than 500 processes")
			})
	})
	t.Run("output", func(t *testing.T) {
		text := "mov $0x9,%ebx\nagain: " + call("1", "1", "0x402000", "6") + "dec %ebx\njne again\nxor %edi,%edi" + exit
		onEngines(t, process.Config{Program: build(t, text), MaxOutput: 20}, func(t *testing.T, p *process.Process, x process.Exit, err error) {
			require.NoError(t, err)
			out, lost := p.Stdout()
			require.Len(t, out, 20)
			require.Equal(t, 9*6-20, lost)
		})
	})
	t.Run("memory", func(t *testing.T) {
		// It maps 1 MB until there is no more, and counts.
		text := "xor %ebx,%ebx\nagain: mov $0x22,%r10d\n" + call("9", "0", "0x100000", "3") + "inc %ebx\ntest %eax,%eax\njns again\nmov %ebx,%edi" + exit
		onEngines(t, process.Config{Program: build(t, text), Memory: 32 << 20}, func(t *testing.T, _ *process.Process, x process.Exit, err error) {
			require.NoError(t, err)
			require.Less(t, x.Code, 25) // the stack takes 8 of 32
		})
	})
}

// Rule: if no event could wake the program, the run ends with an error that says so.
func TestNobodyContinues(t *testing.T) {
	for text, says := range map[string]string{
		call("0x22"):                 "the program waits, and nobody could wake it",
		call("0x3e", "0x64", "0x13"): "the program stopped itself with signal 19, and nobody could continue it",
	} {
		onEngines(t, process.Config{Program: build(t, text)}, func(t *testing.T, _ *process.Process, _ process.Exit, err error) {
			require.EqualError(t, err, says)
		})
	}
}

func TestUnknownCallsAreCounted(t *testing.T) {
	onEngines(t, process.Config{Program: build(t, call("0x3e7")+call("0x3e7")+"xor %edi,%edi"+exit)},
		func(t *testing.T, p *process.Process, _ process.Exit, err error) {
			require.NoError(t, err)
			require.Equal(t, map[uint64]int{999: 2}, p.Unknown)
			require.Equal(t, 3, p.Syscalls)
		})
}

func TestNotAProgram(t *testing.T) {
	good := build(t, "hlt").Data
	change := func(at int, b ...byte) []byte {
		c := append([]byte(nil), good...)
		copy(c[at:], b)
		return c
	}
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"empty":              {nil, "not an ELF program of x86-64"},
		"text":               {[]byte("hello\n"), "not an ELF program of x86-64"},
		"script":             {[]byte("#!/bin/sh -e\n"), "/x needs its interpreter /bin/sh, which was not given"},
		"script_of_itself":   {[]byte("#!/x\n"), "more than 5 scripts name one another as interpreters"},
		"script_of_nothing":  {[]byte("#! \n"), "its first line names no interpreter"},
		"another_machine":    {change(18, 183), "it is for EM_AARCH64"},
		"an_object":          {change(16, 1), "its type is ET_REL"},
		"cut":                {good[:5000], "a segment is outside the file"},
		"a_segment_too_big":  {change(64+40, 0, 0, 0, 0x40), "a segment's sizes or addresses do not fit"},
		"in_the_kernel":      {change(64+16, 0, 0, 0, 0, 0, 0, 0, 0xff), "a segment's sizes or addresses do not fit"},
		"a_32_bit_one":       {change(4, 1), "not an ELF program of x86-64"},
		"segments_backwards": {change(64+56+16, 0, 0, 0x40), "its segments are not in order"},
		"segments_overlap":   {change(64+56+16, 0, 0x10, 0x40), ""},
		"segments_far_apart": {change(64+56+16, 0, 0x20, 0x40, 0x40), "its segments span more than 256 MB"},
		"needs_a_library":    {change(64+56, 3), "which was not given"},
		"no_program_headers": {change(56, 0), "0 program headers"},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := engine.Named("")
			require.NoError(t, err)
			p, err := process.New(process.Config{Program: &process.File{Name: "/x", Data: c.data}}, e.New)
			if c.says == "" { // a kernel maps it, too
				require.NoError(t, err)
				p.Close()
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Contains(t, []errno.Errno{errno.ENOEXEC, errno.ENOENT, errno.ELOOP}, errno.Of(err))
		})
	}
}

// Rule: whatever the file is, it is refused or ends within its budget.
func FuzzProgram(f *testing.F) {
	f.Add(build(f, "mov $0x1,%edi"+exit).Data)
	f.Add(build(f, call("9", "0", "0x1000", "7")+"jmp *%rax").Data)
	f.Add(build(f, call("11", "0x401000", "0x1000")).Data)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := engine.Named("interp")
		require.NoError(t, err)
		p, err := process.New(process.Config{
			Program: &process.File{Name: "/x", Data: b}, Memory: 16 << 20, Options: machine.Options{Budget: 20000},
		}, e.New)
		if err != nil {
			return
		}
		defer p.Close()
		_, err = p.Run()
		require.NotErrorIs(t, err, machine.ErrHandler)
	})
}
