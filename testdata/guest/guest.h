/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every C file of the guest kernel shares: types, section markers, and
 * the tables a kernel image carries beside its text.
 *
 * The names and layouts are the kernel's (x86-64, Linux 6.1), because the
 * tables are read by code that also reads real images. All but the names is
 * our own, and as small as it can be.
 */
#ifndef GUEST_H
#define GUEST_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long s64;
typedef u64 size_t;
typedef s64 ssize_t;
typedef s64 loff_t;
typedef int pid_t;
typedef unsigned short umode_t;
typedef _Bool bool;

#define NULL ((void *)0)
#define true 1
#define false 0

#define ENOENT 2
#define EIO 5
#define EBADF 9
#define EAGAIN 11
#define EFAULT 14
#define EEXIST 17
#define ENOTDIR 20
#define EINVAL 22
#define EMFILE 24
#define ENOSPC 28
#define ERANGE 34
#define ENAMETOOLONG 36

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define barrier() asm volatile("" ::: "memory")
#define READ_ONCE(x) (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define container_of(p, t, m) ((t *)((char *)(p) - __builtin_offsetof(t, m)))

#define noinline __attribute__((noinline, noclone))
#define __used __attribute__((used))
#define __section(s) __attribute__((section(s)))
#define __printf(a, b) __attribute__((format(printf, a, b)))
#define __noreturn __attribute__((noreturn))

/* notrace: no fentry site, as code that the tracer itself may run. */
#define notrace __attribute__((no_instrument_function))
/* noinstr: neither traced nor probed; all of .noinstr.text is blacklisted. */
#define noinstr noinline notrace __section(".noinstr.text")
/* __kprobes: the older way to forbid probes, by section. */
#define __kprobes noinline __section(".kprobes.text")
#define __sched noinline __section(".sched.text")
/* __init: freed after boot, so the kernel no longer takes it for text. */
#define __init noinline __section(".init.text")
#define __initdata __section(".init.data")
#define __exit noinline __section(".exit.text")

/* One word in _kprobe_blacklist forbids probes on one function. */
#define NOKPROBE_SYMBOL(f)                                             \
	static u64 __used __section("_kprobe_blacklist")               \
		_kbl_addr_##f = (u64)f

/*
 * An exception-table entry: a fault at insn goes on at fixup. Both are
 * relative to their own field; type 1 is the plain kind.
 */
#define _ASM_EXTABLE(insn, fixup)                                      \
	".pushsection __ex_table,\"a\"\n"                              \
	".balign 4\n"                                                  \
	".long " #insn " - .\n"                                        \
	".long " #fixup " - .\n"                                       \
	".long 1\n"                                                    \
	".popsection\n"

/* A lock prefix that a kernel on one processor may take out again. */
#define LOCK_PREFIX                                                    \
	".pushsection .smp_locks,\"a\"\n"                              \
	".balign 4\n"                                                  \
	".long 671f - .\n"                                             \
	".popsection\n"                                                \
	"671: lock; "

/*
 * Per-CPU variables are linked from address 0 on; %gs points at the running
 * CPU's copy. The host makes one copy of the template for each CPU.
 */
#define DEFINE_PER_CPU(t, n) __section(".data..percpu") t n
#define this_cpu_read(v)                                               \
	({                                                             \
		__typeof__(v) __r;                                     \
		asm volatile("mov %%gs:%P1, %0" : "=r"(__r) : "i"(&(v))); \
		__r;                                                   \
	})
#define this_cpu_write(v, x)                                           \
	asm volatile("mov %0, %%gs:%P1" ::"r"((__typeof__(v))(x)), "i"(&(v)) : "memory")
#define this_cpu_inc64(v) asm volatile("incq %%gs:%P0" ::"i"(&(v)) : "memory", "cc")
#define this_cpu_add32(v, n)                                           \
	asm volatile("addl %0, %%gs:%P1" ::"er"((int)(n)), "i"(&(v)) : "memory", "cc")

/* Hypercalls: stubs in hyper.S that reach the host. */
void hv_yield(void);
void hv_sleep(u64 ns);
void hv_exit(u64 code) __noreturn;
void hv_putc(int c);
u64 hv_clock(void);
u64 hv_task(void);
u64 hv_cpu(void);

/* lib.S */
void *memcpy(void *d, const void *s, size_t n);
void *memset(void *d, int c, size_t n);
void *memmove(void *d, const void *s, size_t n);

/* lib.c */
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
char *strncpy(char *d, const char *s, size_t n);
int vsnprintf(char *buf, size_t size, const char *fmt, __builtin_va_list ap);
int snprintf(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);

/* sched.c */
struct task_struct {
	u32 flags;
	u32 cpu;
	pid_t pid;
	pid_t tgid;
	u64 state;
	void *mm; /* NULL in kernel threads */
	u64 clone_flags;
	char comm[16];
};
extern struct task_struct init_task;
extern struct task_struct *current_task;
extern int __preempt_count;
#define current this_cpu_read(current_task)
#define preempt_disable() do { this_cpu_add32(__preempt_count, 1); barrier(); } while (0)
#define preempt_enable() do { barrier(); this_cpu_add32(__preempt_count, -1); } while (0)
void schedule(void);
void io_schedule(void);
int printk(const char *fmt, ...) __printf(1, 2);

/* Own counters that handlers and tests look at. */
extern u64 jiffies;

#endif
