package bpf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/hostfiles"
)

// traced is a program with notes as sys/sdt.h makes them: lab:tick at two places, with arguments of each form, and a semaphore, whose
// value is an argument; lab:odd, with an argument that no library reads.
const traced = `
.macro note name, semaphore, arguments
990: nop
.pushsection .note.stapsdt,"","note"
	.balign 4
	.4byte 992f-991f, 994f-993f, 3
991: .asciz "stapsdt"
992: .balign 4
993: .8byte 990b, _.stapsdt.base, \semaphore
	.asciz "lab"
	.asciz "\name"
	.asciz "\arguments"
994: .balign 4
.popsection
.endm
.section .stapsdt.base,"aG","progbits",.stapsdt.base,comdat
.weak _.stapsdt.base
.hidden _.stapsdt.base
_.stapsdt.base: .space 1
.section .probes,"aw"
.balign 2
semaphore: .2byte 0
.text
.globl _start
.type twice_a, @function
twice_a: ret
.type twice_b, @function
twice_b: ret
_start:
	call twice_a
	call twice_b
	call twice_b
	movl $-7, %edi
	movabs $0x1122334455667788, %rax
	push %rax
	movl $1, %ecx
	lea -4(%rsp), %rdx
	movzwl semaphore(%rip), %esi
	note tick, semaphore, "-4@%edi 8@(%rsp) 4@4(%rdx,%rcx,4) -4@$-5 1@%sil 2@6(%rsp)"
	note tick, semaphore, "-4@%edi 8@(%rsp) 4@4(%rdx,%rcx,4) -4@$-5 1@%sil 2@6(%rsp)"
	note odd, 0, "8f@%xmm0"
	movl $60, %eax
	xorl %edi, %edi
	syscall
`

// usdt reads arguments as libbpf's bpf/usdt.bpf.h does.
const usdt = `
#define __kconfig __attribute__((section(".kconfig")))
extern const _Bool LINUX_HAS_BPF_COOKIE __kconfig;
struct arg { u64 value; u32 kind; short reg; char is_signed, shift; };
struct spec { struct arg args[12]; u64 cookie; short count; };
struct { __uint(type, ARRAY); __uint(max_entries, 256); __type(key, int); __type(value, struct spec); } __bpf_usdt_specs SEC(".maps") __attribute__((weak));
struct { __uint(type, HASH); __uint(max_entries, 1024); __type(key, long); __type(value, u32); } __bpf_usdt_ip_to_spec_id SEC(".maps") __attribute__((weak));
static u64 (*cookie)(void *ctx) = (void *)174;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
struct regs { u64 all[21]; };
int hits, count, numbers; long values[6];
static long value(struct regs *ctx, struct spec *s, int n) {
	struct arg *a = &s->args[n];
	u64 v = 0, index = 0;
	switch (a->kind & 0xff) {
	case 0: v = a->value; break;
	case 1: read_kernel(&v, 8, (void *)ctx + a->reg); break;
	case 3: read_kernel(&index, 8, (void *)ctx + (a->kind >> 8 & 0xfff)); index <<= a->kind >> 20 & 0xf;
	case 2: read_kernel(&v, 8, (void *)ctx + a->reg); read_user(&v, 8, (void *)(v + index + a->value)); break;
	}
	v <<= a->shift;
	return a->is_signed ? (long)v >> a->shift : v >> a->shift;
}
static int hit(struct regs *ctx) {
	int id = 0;
	hits++;
	if (LINUX_HAS_BPF_COOKIE)
		id = cookie(ctx);
	else {
		long ip = ctx->all[16];
		u32 *known = lookup(&__bpf_usdt_ip_to_spec_id, &ip);
		if (!known) return 0;
		id = *known;
	}
	struct spec *s = lookup(&__bpf_usdt_specs, &id);
	if (!s) return 0;
	count = s->count; numbers += id;
#pragma unroll
	for (int n = 0; n < 6; n++) values[n] = value(ctx, s, n);
	return 0;
}
`

const usdtPrograms = usdt + `
SEC("usdt//traced:lab:tick") int tick(void *ctx) { return hit(ctx); }
SEC("usdt//traced:lab:nosuch") int nosuch(void *ctx) { return hit(ctx); }
SEC("usdt//traced:lab:odd") int odd(void *ctx) { return hit(ctx); }
SEC("usdt//nosuch:lab:tick") int nowhere(void *ctx) { return hit(ctx); }
SEC("usdt") int bare(void *ctx) { return hit(ctx); }
`

const usdtMoves = usdt + `SEC("usdt//traced:lab:tick") int tick(void *ctx) { return hit(ctx); }`

// tracedProgram is the program that gcc makes of traced, with more options.
func tracedProgram(t *testing.T, options ...string) []byte {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to make a program with tracepoints (apt install gcc)")
	}
	dir := t.TempDir()
	source, file := filepath.Join(dir, "traced.S"), filepath.Join(dir, "traced")
	require.NoError(t, os.WriteFile(source, []byte(traced), 0o600))
	out, err := exec.Command(gcc, append(options, "-nostdlib", "-o", file, source)...).CombinedOutput()
	require.NoError(t, err, string(out))
	code, err := os.ReadFile(file)
	require.NoError(t, err)
	return code
}

// withTraced puts the program into the guest, and runs it beside the object's programs.
func withTraced(code []byte) func(*testing.T, *kprobelab.Lab, *bpf.Options) {
	return func(t *testing.T, l *kprobelab.Lab, o *bpf.Options) {
		k, err := l.Booted()
		require.NoError(t, err)
		require.NoError(t, k.Put([]hostfiles.File{{Path: "/traced", Mode: 0o755, Data: code}}))
		o.Workload = "/traced"
	}
}

// TestTracepointsOfAProgram: a tracepoint is attached at each of its places, its semaphore is raised for each of them, and the program reads its arguments;
// what cannot be attached has its reason.
func TestTracepointsOfAProgram(t *testing.T) {
	code := tracedProgram(t, "-static", "-no-pie")
	eachKernel(t, compiled(t, usdtPrograms), withTraced(code), func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		words, why := map[string]string{}, map[string]string{}
		for _, p := range a.Programs {
			words[p.Name], why[p.Name] = p.Word(), p.AttachError
		}
		require.Equal(t, map[string]string{"tick": "attaches", "nosuch": "not attached", "odd": "not attached", "nowhere": "loads", "bare": "loads"}, words)
		require.Equal(t, "/traced has no tracepoint lab:nosuch", why["nosuch"])
		require.Equal(t, `lab:odd: an argument that cannot be read: "8f@%xmm0"`, why["odd"])
		require.Contains(t, why["nowhere"], "the guest has no /nosuch")
		require.Contains(t, why["bare"], "does not say to what")
		require.Empty(t, a.Run.Error)
		require.Equal(t, 0, a.Run.Exit)
		require.Equal(t, `{"hits":2,"count":6,"numbers":0,"values":[-7,1234605616436508552,287454020,-5,2,4386]}`, string(bss(a)))
	})
}

// TestTracepointsOfAProgramThatMoves: its places have other addresses in each process; a kernel without cookies cannot tell them apart.
func TestTracepointsOfAProgramThatMoves(t *testing.T) {
	code := tracedProgram(t, "-static-pie")
	eachKernel(t, compiled(t, usdtMoves), withTraced(code), func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		if l.Image.Release()[:4] == "5.10" {
			require.Equal(t, "not attached", a.Programs[0].Word())
			require.Equal(t, "/traced lies somewhere else in each process, and this kernel's probes carry no cookie", a.Programs[0].AttachError)
			return
		}
		attached(t, a)
		require.Equal(t, `{"hits":2,"count":6,"numbers":0,"values":[-7,1234605616436508552,287454020,-5,2,4386]}`, string(bss(a)))
	})
}

const manyFunctions = `
int entered, returned, both;
SEC("uprobe.multi//traced:twice_*") int enters(void *ctx) { entered++; return 0; }
SEC("uretprobe.multi//traced:twice_?") int leaves(void *ctx) { returned++; return 0; }
SEC("uprobe.session//traced:twice_b") int session(void *ctx) { both++; return 0; }
SEC("uprobe.multi//traced:nosuch*") int nosuch(void *ctx) { return 0; }
SEC("uprobe.multi//nosuch:main") int nowhere(void *ctx) { return 0; }
`

// TestFunctionsOfAProgram: multi-probes on functions of a program come with 6.6, sessions with 6.13; an older kernel refuses the program or the link.
func TestFunctionsOfAProgram(t *testing.T) {
	code := tracedProgram(t, "-static", "-no-pie")
	eachKernel(t, compiled(t, manyFunctions), withTraced(code), func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		words, why := map[string]string{}, map[string]string{}
		for _, p := range a.Programs {
			words[p.Name], why[p.Name] = p.Word(), p.AttachError
		}
		multi, session, counts := "attaches", "attaches", `{"entered":3,"returned":3,"both":4}`
		switch release := l.Image.Release(); {
		case strings.HasPrefix(release, "5.10."), strings.HasPrefix(release, "6.1."):
			multi, session, counts = "not attached", "not attached", ""
			require.Contains(t, why["enters"], "EINVAL")
		case strings.HasPrefix(release, "6.12."):
			session, counts = "not attached", `{"entered":3,"returned":3,"both":0}`
		}
		require.Equal(t, map[string]string{"enters": multi, "leaves": multi, "session": session, "nosuch": "not attached", "nowhere": "loads"}, words)
		require.Equal(t, "/traced has no function nosuch*", why["nosuch"])
		require.Contains(t, why["nowhere"], "the guest has no /nosuch")
		require.Equal(t, counts, string(bss(a)))
	})
}

// bss returns the values that programs left in the variables of .bss.
func bss(a *answer.Object) []byte {
	for _, m := range a.Run.Maps {
		if m.Map == ".bss" && len(m.Entries) > 0 {
			return m.Entries[0].Value
		}
	}
	return nil
}
