// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sets hardware breakpoints, on its own data and code, a child's and the kernel's, makes accesses that
 * are known, and prints what fired, where and in which order: by perf_event_open with samples and
 * with signals, and by ptrace. For make conformance-watch.
 *
 *	breakpoints COUNT SEED            up to four at once, on its own memory and code
 *	breakpoints COUNT SEED DATA CODE  what QEMU's software emulation does right; and the kernel's
 *
 * COUNT is the number of random accesses, SEED decides them; DATA and CODE are the addresses of
 * the kernel's panic_timeout and proc_dointvec. The first prints the same on a processor and on a dump,
 * the second under QEMU and on a dump of the same kernel.
 */
#include "sys.h"
#include <stddef.h>
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <asm/sigcontext.h>
#include <asm/siginfo.h>
#include <asm/ucontext.h>

#define PAGE 4096ul
enum { EXECUTE = 4, WRITE = 2, BOTH = 3 };	/* bp_type */
enum { DEBUG_REGS = 848, FLAGS = 144, IP = 128 };	/* in struct user */
enum { TRAP_FLAG = 0x100, RESUME_FLAG = 0x10000 };

struct access { const char *name; u64 function, begins, ends; };

extern const struct access accesses[];
void access(u64 function, char *at, char *from);
long try_load(char *at);
extern char try_load_insn[], try_load_fails[];
void signal_return(void);

/* What QEMU gets wrong is left out, and the ip of what it has one iteration late. */
static int simple;

/* The memory that is watched: around the border of two pages; and one that is read beside. */
static char memory[2 * PAGE] __attribute__((aligned(4096)));
static char *const middle = memory + PAGE;
#define FROM (memory + 64)

static char out[8192];
static u64 used;

static void flush(void)
{
	SYS(write, 1, out, used);
	used = 0;
}

static void text(const char *s)
{
	if (used + strlen(s) > sizeof out)
		flush();
	while (*s)
		out[used++] = *s++;
}

static void number(u64 v, int base)
{
	char digits[24];
	int n = sizeof digits;

	digits[--n] = 0;
	do
		digits[--n] = "0123456789abcdef"[v % base];
	while (v /= base);
	text(digits + n);
}

static void hex(u64 v)
{
	text("0x");
	number(v, 16);
}

static void decimal(long v)
{
	if (v < 0)
		text("-");
	number(v < 0 ? -v : v, 10);
}

static int begins(const char *s, const char *with)
{
	while (*with)
		if (*s++ != *with++)
			return 0;
	return 1;
}

/* Whether it is a string instruction that repeats. */
static int repeats(const struct access *a) { return begins(a->name, "rep") || begins(a->name, "backwards"); }

/* An address: of the kernel as it is, else from where the access begins or the middle of memory. */
static void place(u64 at, const struct access *a)
{
	if ((long)at < 0 && simple && !a)
		text("kernel");
	else if ((long)at < 0)
		hex(at);
	else if (simple && a && repeats(a) && at - a->begins <= a->ends - a->begins)
		text("i");
	else if (a && at - a->function < 128) {
		text("i");
		decimal(at - a->begins);
	} else if (at - (u64)memory < sizeof memory) {
		text("m");
		decimal((long)(at - (u64)middle));
	} else
		text("elsewhere");
}

static u64 random_state;

static u64 below(u64 n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (random_state >> 33) % n;
}

/* Events, in one ring. */
enum { EVENTS = 4, RING = 8 };
static struct {
	int n;
	long fd[EVENTS];
	u64 id[EVENTS];
	struct perf_event_mmap_page *ring;
} ev;

static struct perf_event_attr breakpoint(int type, u64 at, u64 len)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.size = sizeof attr;
	attr.bp_type = type;
	attr.bp_addr = at;
	attr.bp_len = len;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID;
	return attr;
}

static long watch_attr(struct perf_event_attr *attr, long pid, int cpu)
{
	long fd = SYS(perf_event_open, attr, pid, cpu, -1, 0), r;

	if (fd < 0)
		return fd;
	if (!ev.n) {
		r = SYS(mmap, 0, (1 + RING) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (r < 0 && r > -4096)
			return r;
		ev.ring = (void *)r;
	} else if ((r = SYS(ioctl, fd, PERF_EVENT_IOC_SET_OUTPUT, ev.fd[0])) < 0)
		return r;
	SYS(ioctl, fd, PERF_EVENT_IOC_ID, &ev.id[ev.n]);
	ev.fd[ev.n++] = fd;
	return 0;
}

static long watch(int type, u64 at, u64 len)
{
	struct perf_event_attr attr = breakpoint(type, at, len);

	return watch_attr(&attr, 0, -1);
}

struct sample { struct perf_event_header header; u64 ip, addr, id; };

static void counts(void)
{
	for (int i = 0; i < ev.n; i++) {
		u64 count = 0;
		SYS(read, ev.fd[i], &count, sizeof count);
		text(i ? "," : ": ");
		decimal(count);
	}
}

/* Prints the counts and the samples, and closes the events. */
static void report(const struct access *a)
{
	u64 size = RING * PAGE;
	char *data = (char *)ev.ring + PAGE;

	for (int i = 0; i < ev.n; i++)
		SYS(ioctl, ev.fd[i], PERF_EVENT_IOC_DISABLE, 0);
	counts();
	for (u64 at = ev.n ? ev.ring->data_tail : 0; ev.n && at < ev.ring->data_head;) {
		struct sample s;
		for (u64 i = 0; i < sizeof s; i++)
			((char *)&s)[i] = data[(at + i) % size];
		if (!s.header.size)
			break;
		at += s.header.size;
		if (s.header.type != PERF_RECORD_SAMPLE)
			continue;
		for (int i = 0; i < ev.n; i++)
			if (ev.id[i] == s.id) {
				text(" ");
				decimal(i);
			}
		text("@");
		place(s.ip, a);
		text("/");
		place(s.addr, a);
	}
	text("\n");
	if (ev.n)
		SYS(munmap, ev.ring, (1 + RING) * PAGE);
	for (int i = ev.n; i--;)
		SYS(close, ev.fd[i]);
	ev.n = 0;
}

static void name_watch(int type, u64 at, u64 len, const struct access *a)
{
	text(type == EXECUTE ? " x" : type == WRITE ? " w" : " rw");
	if (type != EXECUTE)
		decimal(len);
	text("=");
	place(at, a);
}

/* A breakpoint that may meet the access to what is at the address. */
static void choose(int *type, u64 *at, u64 *len, const struct access *a, u64 near)
{
	*type = (int[]){ WRITE, BOTH, BOTH, WRITE, EXECUTE }[below(5)];
	*len = 1ul << below(4);
	*at = (near + below(24) - 8) & -*len;
	if (*type == EXECUTE) {
		*at = below(3) && !(simple && repeats(a)) ? a->begins : a->ends;
		*len = sizeof(long);
	}
}

static int how_many(void)
{
	int n = 0;

	while (accesses[n].name)
		n++;
	return n;
}

/* Random accesses under random breakpoints. */
static void own_accesses(u64 count)
{
	int n = how_many();

	for (u64 i = 0; i < count; i++) {
		const struct access *a = &accesses[below(n)];
		char *at = middle - 24 + below(40), *from = below(2) ? FROM : at + below(9) - 4;

		memset(middle - 64, 1, 128);
		text(a->name);
		text(" ");
		place((u64)at, NULL);
		text(from == FROM ? "" : " ");
		if (from != FROM)
			place((u64)from, NULL);
		for (int k = simple ? 1 : 1 + below(EVENTS); k > 0; k--) {
			int type;
			u64 where, len;
			long r;
			choose(&type, &where, &len, a, (u64)(below(4) ? at : from));
			name_watch(type, where, len, a);
			if ((r = watch(type, where, len)) < 0) {
				text("!");
				decimal(r);
			}
		}
		access(a->function, at, from);
		report(a);
	}
}

static const struct access *named(const char *name)
{
	for (const struct access *a = accesses; a->name; a++) {
		u64 i = 0;
		while (name[i] && name[i] == a->name[i])
			i++;
		if (name[i] == a->name[i])
			return a;
	}
	return NULL;
}

static void must(const char *what, long r)
{
	if (r >= 0)
		return;
	text(what);
	text(" fails with ");
	decimal(r);
	text("\n");
}

/* What the kernel does to user memory for a system call. */
static void by_the_kernel(void)
{
	int fds[2];
	char word[8] = { 0 };

	must("pipe", SYS(pipe2, fds, 0));
	text("read and write of a pipe");
	watch(WRITE, (u64)middle, 4);
	watch(BOTH, (u64)middle + 8, 8);
	SYS(write, fds[1], middle + 8, 8);
	SYS(read, fds[0], middle, 8);
	report(NULL);
	text("the same without the kernel");
	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = breakpoint(BOTH, (u64)middle + 8 * i, 8);
		attr.exclude_kernel = 1;
		watch_attr(&attr, 0, -1);
	}
	SYS(write, fds[1], middle + 8, 8);
	SYS(read, fds[0], middle, 8);
	access(named("load8")->function, middle, FROM);
	report(named("load8"));
	text("a system call that fails");
	watch(BOTH, (u64)word, 8);
	SYS(read, -1, word, 8);
	report(NULL);
	SYS(close, fds[0]);
	SYS(close, fds[1]);
}

static void on_fault(int sig, siginfo_t *info, struct ucontext *u)
{
	text(" (signal ");
	decimal(sig);
	text(" at ");
	place(info->si_addr ? (u64)info->si_addr : 0, NULL);
	text(u->uc_mcontext.eflags & RESUME_FLAG ? " with RF)" : ")");
	u->uc_mcontext.rip = (u64)try_load_fails;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, struct ucontext *))
{
	struct { void *handler; u64 flags; void (*restorer)(void); u64 mask; } a = { handler, SA_SIGINFO | SA_RESTORER, signal_return, 0 };

	must("rt_sigaction", SYS(rt_sigaction, sig, &a, 0, 8));
}

/* Instructions that fault: they are executed again, without another hit. */
static void faults(void)
{
	char *fresh = (char *)SYS(mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct access load = { "", (u64)try_load, (u64)try_load_insn, (u64)try_load_insn + 2 };

	text("a load that makes a page come");
	watch(EXECUTE, (u64)try_load_insn, 8);
	watch(BOTH, (u64)fresh, 8);
	try_load(fresh);
	try_load(fresh);
	report(&load);
	handle(SIGSEGV, on_fault);
	SYS(mprotect, fresh, PAGE, PROT_NONE);
	text("a load that fails");
	watch(EXECUTE, (u64)try_load_insn, 8);
	watch(BOTH, (u64)fresh, 8);
	watch(EXECUTE, (u64)try_load_fails, 8);
	try_load(fresh);
	report(&load);
	SYS(munmap, fresh, PAGE);
}

/* What a breakpoint is turned off by, and on again. */
static void on_and_off(void)
{
	const struct access *a = named("store4");
	struct perf_event_attr attr = breakpoint(WRITE, (u64)middle, 4);

	text("off, on, moved, twice");
	attr.disabled = 1;
	must("perf_event_open", watch_attr(&attr, 0, -1));
	access(a->function, middle, FROM);
	counts();
	SYS(ioctl, ev.fd[0], PERF_EVENT_IOC_ENABLE, 0);
	access(a->function, middle, FROM);
	counts();
	attr.bp_addr = (u64)middle + 16;
	attr.disabled = 0;
	decimal(SYS(ioctl, ev.fd[0], PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	access(a->function, middle, FROM);
	counts();
	access(a->function, middle + 16, FROM);
	access(a->function, middle + 18, FROM);
	report(a);
	text("four, and a fifth");
	for (int i = 0; i < 4; i++)
		watch(WRITE, (u64)middle + 4 * i, 4);
	attr = breakpoint(WRITE, (u64)middle + 16, 4);
	decimal(SYS(perf_event_open, &attr, 0, -1, -1, 0));
	for (int i = 0; i < 5; i++)
		access(a->function, middle + 4 * i, FROM);
	report(a);
}

/* A child's breakpoints, which its own children have, too. */
static void of_a_child(void)
{
	const struct access *a = named("inc");
	struct perf_event_attr attr = breakpoint(BOTH, (u64)middle, 8);
	int go[2], ready[2], status;
	long pid;
	char c;

	must("pipe", SYS(pipe2, go, 0));
	must("pipe", SYS(pipe2, ready, 0));
	for (int inherit = 0; inherit < 2; inherit++) {
		if (!(pid = SYS(fork))) {
			memset(middle, 0, 8); /* so that the page is its own */
			SYS(write, ready[1], "", 1);
			SYS(read, go[0], &c, 1);
			access(a->function, middle, FROM);
			if (!(pid = SYS(fork))) {
				access(named("store4")->function, middle + 4, FROM);
				SYS(exit_group, 0);
			}
			SYS(wait4, pid, &status);
			SYS(exit_group, 0);
		}
		text(inherit ? "a child and its own" : "a child, not its own");
		SYS(read, ready[0], &c, 1);
		attr.inherit = inherit;
		long fd = SYS(perf_event_open, &attr, pid, -1, -1, 0);
		must("perf_event_open", fd);
		access(a->function, middle, FROM); /* not the child's */
		SYS(write, go[1], "", 1);
		SYS(wait4, pid, &status);
		u64 count = 0;
		SYS(read, fd, &count, sizeof count);
		text(": ");
		decimal(count);
		text("\n");
		SYS(close, fd);
	}
	for (int i = 0; i < 2; i++) {
		SYS(close, go[i]);
		SYS(close, ready[i]);
	}
}

static volatile long signals;
static const struct access *signalled;

static void on_trap(int sig, siginfo_t *info, struct ucontext *u)
{
	text(" (signal ");
	decimal(sig);
	text(" code ");
	decimal(info->si_code);
	text(" address ");
	place((u64)info->si_addr, signalled);
	text(" data ");
	hex(((u64 *)info)[3]);
	text(" at ");
	place(u->uc_mcontext.rip, signalled);
	text(")");
	signals++;
}

static void on_overflow(int sig, siginfo_t *info, struct ucontext *u)
{
	(void)u;
	text(" (signal ");
	decimal(sig);
	text(" code ");
	decimal(info->si_code);
	text(")");
	signals++;
}

/* Signals in the place of samples. */
static void by_signal(void)
{
	struct perf_event_attr attr;
	long fd;

	signalled = named("two");
	handle(SIGTRAP, on_trap);
	for (int type = WRITE; type <= EXECUTE; type++) {
		attr = breakpoint(type, type == EXECUTE ? signalled->begins : (u64)middle, type == EXECUTE ? 8 : 4);
		attr.sigtrap = attr.remove_on_exec = attr.exclude_kernel = 1;
		attr.sig_data = 0x5157;
		fd = SYS(perf_event_open, &attr, 0, -1, -1, 0);
		text("SIGTRAP: ");
		decimal(fd < 0 ? fd : 0);
		access(signalled->function, middle, FROM);
		text("\n");
		if (fd >= 0)
			SYS(close, fd);
	}
	handle(SIGUSR1, on_overflow);
	attr = breakpoint(WRITE, (u64)middle, 4);
	attr.disabled = 1;
	fd = SYS(perf_event_open, &attr, 0, -1, -1, 0);
	struct { int type, pid; } owner = { 0, SYS(gettid) }; /* F_OWNER_TID */
	SYS(fcntl, fd, F_SETFL, FASYNC);
	SYS(fcntl, fd, 10, SIGUSR1);	/* F_SETSIG */
	SYS(fcntl, fd, 15, &owner);	/* F_SETOWN_EX */
	text("an overflow:");
	SYS(ioctl, fd, PERF_EVENT_IOC_REFRESH, 2);
	signals = 0;
	for (int i = 0; i < 4; i++) {
		access(signalled->function, middle, FROM);
		for (int turns = 0; turns < 100 && signals <= i; turns++)
			SYS(sched_yield);
	}
	u64 count = 0;
	SYS(read, fd, &count, sizeof count);
	text(" count ");
	decimal(count);
	text("\n");
	SYS(close, fd);
}

static long poke(long pid, int n, u64 v) { return SYS(ptrace, PTRACE_POKEUSR, pid, DEBUG_REGS + 8 * n, v); }

static u64 peek(long pid, u64 offset)
{
	u64 v = 0;

	SYS(ptrace, PTRACE_PEEKUSR, pid, offset, &v);
	return v;
}

/* What DR7 has for register n. */
static u64 control(int n, int type, u64 len)
{
	u64 rw = type == EXECUTE ? 0 : type == WRITE ? 1 : 3, size = type == EXECUTE ? 0 : len == 8 ? 2 : len - 1;

	return 1ul << 2 * n | (rw | size << 2) << (16 + 4 * n);
}

/* Follows a tracee to its end: each stop, and by what. */
static void follow(long pid, const struct access *a, int steps)
{
	int status = 0;

	for (int stops = 0; stops < 40; stops++) {
		siginfo_t info;
		SYS(wait4, pid, &status);
		if ((status & 0xff) != 0x7f)
			break;
		int sig = status >> 8 & 0xff;
		memset(&info, 0, sizeof info);
		SYS(ptrace, PTRACE_GETSIGINFO, pid, 0, &info);
		if (sig == SIGTRAP) {
			text(" [code ");
			decimal(info.si_code);
			text(" address ");
			place((u64)info.si_addr, a);
			text(" ip ");
			place(peek(pid, IP), a);
			text(" dr6 ");
			hex(peek(pid, DEBUG_REGS + 48));
			text(peek(pid, FLAGS) & RESUME_FLAG && !repeats(a) ? " RF]" : "]"); /* of a repetition, processors differ */
			poke(pid, 6, 0);
			sig = 0;
		}
		int stepping = steps && peek(pid, IP) - a->function < 128;
		SYS(ptrace, stepping ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, 0, sig);
	}
	text((status & 0x7f) ? " killed\n" : " exits\n");
	if (status & 0x7f)
		SYS(kill, pid, SIGKILL);
}

/* Random accesses of a tracee, with breakpoints by its debug registers. */
static void traced(u64 count)
{
	int n = how_many(), status;

	for (u64 i = 0; i < count; i++) {
		const struct access *a = &accesses[below(n)];
		char *at = middle - 24 + below(40);
		u64 dr7 = 0;
		int steps = below(3) == 0 && !(simple && repeats(a));
		long pid = SYS(fork);

		if (!pid) {
			SYS(ptrace, PTRACE_TRACEME);
			memset(middle - 64, 1, 128);
			pid = SYS(getpid);
			SYS(kill, pid, SIGSTOP);
			access(a->function, at, FROM);
			SYS(exit_group, 0);
		}
		SYS(wait4, pid, &status);
		text(steps ? "traced, stepped " : "traced ");
		text(a->name);
		text(" ");
		place((u64)at, NULL);
		int k = simple ? 1 : 1 + below(4);
		for (int j = 0; j < k; j++) {
			int type;
			u64 where, len;
			choose(&type, &where, &len, a, (u64)at);
			name_watch(type, where, len, a);
			long r = poke(pid, j, where);
			dr7 |= control(j, type, len);
			if (!r)
				r = poke(pid, 7, dr7);
			if (r) {
				text("!");
				decimal(r);
			}
		}
		text(" dr7 ");
		hex(peek(pid, DEBUG_REGS + 56));
		SYS(ptrace, PTRACE_CONT, pid, 0, 0);
		follow(pid, a, steps);
	}
}

static void sysctl(const char *name, const char *write)
{
	char digits[16];
	long fd = SYS(open, name, write ? O_WRONLY : O_RDONLY);

	must(name, fd);
	if (write)
		SYS(write, fd, write, strlen(write));
	else
		SYS(read, fd, digits, sizeof digits);
	SYS(close, fd);
}

/* The kernel's own data and code: by this task, and by the processor. */
static void of_the_kernel(u64 data, u64 code)
{
	static const char panic[] = "/proc/sys/kernel/panic";

	for (int i = 0; i < 4; i++) {
		struct perf_event_attr d = breakpoint(i & 1 ? BOTH : WRITE, data, 4), x = breakpoint(EXECUTE, code, 8);
		int cpu = i < 2 ? -1 : 0;
		text(cpu < 0 ? "panic_timeout" : "panic_timeout by a processor");
		must("data", watch_attr(&d, cpu < 0 ? 0 : -1, cpu));
		must("code", watch_attr(&x, cpu < 0 ? 0 : -1, cpu));
		sysctl(panic, "7");
		sysctl(panic, NULL);
		sysctl(panic, "0");
		report(accesses);
	}
}

/* A kprobe on text that is watched: the kernel writes it by another address. */
static void text_poke(u64 code)
{
	char digits[8] = { 0 };
	struct perf_event_attr probe;
	long type = 0, fd;

	SYS(mkdir, "/sys", 0755);
	SYS(mount, "sysfs", "/sys", "sysfs", 0, 0);
	fd = SYS(open, "/sys/bus/event_source/devices/kprobe/type", O_RDONLY);
	must("the type of kprobes", fd);
	SYS(read, fd, digits, 7);
	SYS(close, fd);
	for (char *s = digits; *s >= '0' && *s <= '9'; s++)
		type = type * 10 + *s - '0';
	memset(&probe, 0, sizeof probe);
	probe.type = type;
	probe.size = sizeof probe;
	probe.config1 = (u64)"proc_dointvec";
	text("a kprobe on watched text");
	must("w", watch(WRITE, code, 8));
	must("x", watch(EXECUTE, code, 8));
	fd = SYS(perf_event_open, &probe, 0, -1, -1, 0);
	must("kprobe", fd);
	sysctl("/proc/sys/kernel/panic", NULL);
	u64 count = 0;
	SYS(read, fd, &count, sizeof count);
	SYS(close, fd);
	sysctl("/proc/sys/kernel/panic", NULL);
	text(" kprobe ");
	decimal(count);
	report(accesses);
}

static u64 argument(const char *s, u64 base)
{
	u64 v = 0;

	for (; *s; s++)
		v = v * base + (*s > '9' ? *s - 'a' + 10 : *s - '0');
	return v;
}

void start(long *stack)
{
	char **args = (char **)(stack + 1);
	u64 count, first = 1;

	if (*stack < 3)
		SYS(exit_group, 2);
	count = argument(args[1], 10);
	random_state = argument(args[2], 10);
	simple = *stack == 5;
	SYS(sched_setaffinity, 0, sizeof first, &first); /* which a processor's own events are for */
	memset(memory, 1, sizeof memory);
	own_accesses(count);
	faults();
	on_and_off();
	of_a_child();
	by_signal();
	traced(count / 4);
	if (simple) {
		by_the_kernel();
		of_the_kernel(argument(args[3], 16), argument(args[4], 16));
		text_poke(argument(args[4], 16));
	}
	flush();
	SYS(exit_group, 0);
}
