// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that books, tests and sample commands probe by name, and those
 * that must refuse it, in the sections that make them refuse.
 */

/* Divides by what the caller expects; the upstream unit test's shape. */
static u32 div_factor = 10;

noinline u32 kprobe_target(u32 value)
{
	return value / READ_ONCE(div_factor);
}

noinline u32 kprobe_target2(u32 value)
{
	return value / READ_ONCE(div_factor) + 1;
}

/* What handlers of that test call: a probe on it is then a nested one. */
noinline u32 kprobe_recursion_target(u32 value)
{
	return value / READ_ONCE(div_factor);
}

noinline u64 kprobe_stacktrace_internal_target(u64 (*fn)(u64), u64 x)
{
	u64 r = fn ? fn(x) : x;

	barrier();
	return r + 1;
}

noinline u64 kprobe_stacktrace_target(u64 x)
{
	u64 r = kprobe_stacktrace_internal_target(NULL, x);

	barrier();
	return r + 1;
}

/* 1 to 6 make 21: the tracer's boot test. */
noinline int kprobe_trace_selftest_target(int a1, int a2, int a3, int a4, int a5, int a6)
{
	return a1 + a2 + a3 + a4 + a5 + a6;
}

noinline int register_kprobe(void *p)
{
	return p ? 0 : -EINVAL;
}

noinline long __x64_sys_rt_sigreturn(void *regs)
{
	barrier();
	return 0;
}

/* Not to be probed, function by function. */
noinline u64 nokprobe_function(u64 x)
{
	return x + 3;
}
NOKPROBE_SYMBOL(nokprobe_function);

noinline void *get_kprobe(void *addr)
{
	barrier();
	return NULL;
}
NOKPROBE_SYMBOL(get_kprobe);

noinline int kprobe_int3_handler(void *regs)
{
	barrier();
	return 0;
}
NOKPROBE_SYMBOL(kprobe_int3_handler);

noinline int do_int3(void *regs)
{
	return kprobe_int3_handler(regs);
}
NOKPROBE_SYMBOL(do_int3);

/* Not to be probed, by section: the older way. */
__kprobes u64 kprobes_text_function(u64 x)
{
	return x + 4;
}

/* Nor may anything in .noinstr.text. */
noinstr u64 noinstr_function(u64 x)
{
	return x + 5;
}

noinstr int irqentry_enter(void *regs)
{
	barrier();
	return 0;
}

noinstr void exc_int3(void *regs)
{
	barrier();
}

/*
 * Functions by whose existence an image tells its configuration: probes on
 * ftrace sites, jump optimization, rethook. They do nothing; what they stand
 * for happens outside.
 */
noinline void kprobe_ftrace_handler(u64 ip)
{
	barrier();
}
NOKPROBE_SYMBOL(kprobe_ftrace_handler);

noinline void arch_optimize_kprobes(void *list)
{
	barrier();
}

notrace noinline void arch_rethook_trampoline(void)
{
	asm volatile("ud2");
}
NOKPROBE_SYMBOL(arch_rethook_trampoline);

/* A name with a suffix, as compilers give to clones. */
u64 clone_function_isra(u64 x) __asm__("clone_function.isra.0");
noinline u64 clone_function_isra(u64 x)
{
	return x + 6;
}

/* The blacklisted function's clone is refused with it. */
u64 nokprobe_clone(u64 x) __asm__("nokprobe_function.constprop.0");
noinline u64 nokprobe_clone(u64 x)
{
	return x + 7;
}

noinline u64 call_clones(u64 x)
{
	return clone_function_isra(x) + nokprobe_clone(x);
}

/* Freed after boot. */
static u32 boot_count __initdata;

static __init u64 init_helper(u64 x)
{
	return x + ++boot_count;
}

/* Kernels with RANDOMIZE_BASE have it, and load modules at another address. */
__init u64 kaslr_get_random_long(const char *purpose)
{
	return boot_count;
}

__init void start_kernel(void)
{
	init_helper(1);
	barrier();
}

const char linux_banner[] =
	"Linux version 6.1.0-kprobelab (build@kprobelab) (" GUEST_COMPILER
	") #1 SMP PREEMPT_DYNAMIC\n";
const char linux_proc_banner[] = "%s version %s (build@kprobelab) (" GUEST_COMPILER ") %s\n";

/*
 * Handlers of jprobes: each has the probed function's arguments, and ends in
 * jprobe_return, which does not come back here.
 */
void jprobe_return(void);

noinline long jsys_open(const char *filename, int flags, int mode)
{
	printk("process '%s' call open('%s', %d, %d)\n", current->comm, filename, flags, mode);
	jprobe_return();
	return 0;
}

noinline long j_do_fork(u64 clone_flags, u64 stack_start, u64 stack_size,
			int *parent_tidptr, int *child_tidptr, u64 tls)
{
	printk("jprobe: clone_flags = 0x%lx, stack_start = 0x%lx stack_size = 0x%lx\n",
	       clone_flags, stack_start, stack_size);
	jprobe_return();
	return 0;
}

/* Data of every width, for @symbol arguments. */
u64 test_u64 = 0x1122334455667788;
s64 test_s64 = -2;
u32 test_u32 = 0xdeadbeef;
u16 test_u16 = 0xcafe;
u8 test_u8 = 0x5a;
char test_string[32] = "a string in data";
u8 test_array[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
char *test_string_ptr = test_string;
u64 test_bss[16];
