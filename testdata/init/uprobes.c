// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks the kernel it runs on about uprobes: FILE is mapped for execution, a uprobe is
 * registered by perf_event_open at each offset that LIST has (numbers of 32 bits),
 * and the instruction is executed once under it, with all registers in the middle of
 * empty memory and the trap flag set. Writes a struct answer for each to stdout,
 * in hexadecimal. The name of a function as third argument is the one that the kernel calls before it
 * steps a copy; calls of it are counted.
 */
#include "sys.h"
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <asm/sigcontext.h>
#include <asm/ucontext.h>

/* What the kernel says of one offset (internal/tools/conformance/uprobes, answer). */
struct answer {
	unsigned char state, signal, stepped;
	unsigned char first, left;	/* the first byte after the hit, and without the probe */
	unsigned char unused;
	unsigned short err;
	int moved;			/* by how much ip has moved */
	unsigned char copy[16];		/* the slot, of what was stepped */
};

enum { NOT_ASKED, ASKED, DIED };

/* What a child and its parent share. */
struct shared {
	u32 next, different, expected, where;
	struct answer answers[];
};

/* Where the file is mapped: what its instructions find by rip is not there. */
#define TEXT		0x200000000000
#define NONE_SIZE	(8ul << 30)
#define SCRATCH_SIZE	(64ul << 10)
#define SLOT		128	/* UPROBE_XOL_SLOT_BYTES; the first is the trampoline's */
#define TRAP_FLAG	0x100
#define NOP10		10	/* the longest nop that becomes a call */

static const char *path;
static char *text, *scratch, *slot;
static const u32 *list;
static u64 text_size;
static u32 count;
static struct shared *shared;
static int uprobe_type, kprobe_type, counter = -1, probe = -1;
static char buffer[1 << 16];

static void fail(const char *what, long err)
{
	char number[] = "00000000\n";

	SYS(write, 2, what, strlen(what));
	SYS(write, 2, ": error ", 8);
	for (int i = 7; i >= 0; i--, err /= 10)
		number[i] = '0' + (err < 0 ? -err : err) % 10;
	SYS(write, 2, number, 9);
	SYS(exit_group, 1);
}

static long must(const char *what, long r)
{
	if (r < 0)
		fail(what, r);
	return r;
}

static u64 whole(const char *name, char *to, u64 size)
{
	int fd = must(name, SYS(open, name, O_RDONLY));
	u64 n = 0;
	long r;

	while (n < size && (r = must(name, SYS(read, fd, to + n, size - n))) > 0)
		n += r;
	SYS(close, fd);
	return n;
}

static int number_in(const char *name)
{
	int n = 0;

	buffer[whole(name, buffer, 16)] = 0;
	for (const char *s = buffer; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + *s - '0';
	return n;
}

/* map maps a file privately, anywhere when at is 0. */
static char *map(const char *name, u64 at, int prot, u64 *size)
{
	int fd = must(name, SYS(open, name, O_RDONLY));

	*size = must(name, SYS(lseek, fd, 0, 2));
	at = must(name, SYS(mmap, at, *size, prot, MAP_PRIVATE, fd, 0));
	SYS(close, fd);
	return (char *)at;
}

static long event(int type, const char *name, u64 offset)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.type = type;
	attr.size = sizeof(attr);
	attr.config1 = (u64)name;
	attr.config2 = offset;
	return SYS(perf_event_open, &attr, 0, -1, -1, 0);
}

static u64 counted(void)
{
	u64 n = 0;

	SYS(read, counter, &n, sizeof(n));
	return n;
}

/* find_slot finds the first slot of the XOL area, once there is one. */
static void find_slot(void)
{
	u64 size = whole("/proc/self/maps", buffer, sizeof(buffer)), start = 0;
	const char *line = buffer;

	for (u64 i = 0; i + 10 <= size; i++) {
		const char *s = buffer + i, *want = "[uprobes]\n";
		int n = 0;

		if (i && s[-1] == '\n')
			line = s;
		while (n < 10 && s[n] == want[n])
			n++;
		if (n < 10)
			continue;
		for (; *line != '-'; line++)
			start = start << 4 | (*line > '9' ? *line - 'a' + 10 : *line - '0');
		slot = (char *)start + SLOT;
		return;
	}
}

static u64 before;
static char original[NOP10];

/* hit says what came of the last hit. */
static void hit(int sig, const struct sigcontext *c)
{
	struct answer *a = &shared->answers[shared->next];
	u32 offset = list[shared->next];

	a->signal = sig;
	a->stepped = counted() - before;
	a->first = text[offset];
	a->moved = c->rip - (u64)(text + offset);
	if (a->stepped) {
		if (!slot)
			find_slot();
		if (slot)
			memcpy(a->copy, slot, sizeof(a->copy));
	}
	SYS(close, probe);
	a->left = text[offset];
	/* A nop that was a call keeps that as its operand: 66 2e 0f 1f 84, and e8 and where it led. */
	for (int i = 0; i < (a->first == 0xcc ? 1 : NOP10); i++)
		shared->expected += text[offset + i] != original[i];
	a->state = ASKED;
	shared->next++;
}

/* ask registers a probe; true when it is accepted. */
static int ask(void)
{
	struct answer *a = &shared->answers[shared->next];

	memcpy(original, text + list[shared->next], NOP10);
	probe = event(uprobe_type, path, list[shared->next]);
	if (probe >= 0)
		return 1;
	a->err = -probe;
	a->state = ASKED;
	shared->next++;
	return 0;
}

static void finish(void)
{
	u64 at = 0, n;
	int fd = SYS(open, path, O_RDONLY);

	while ((n = SYS(read, fd, buffer, sizeof(buffer))) > 0 && n <= sizeof(buffer))
		for (u64 i = 0; i < n; i++, at++)
			if (text[at] != buffer[i]) {
				shared->different++;
				shared->where = at;
			}
	SYS(exit_group, 0);
}

/* on_signal goes from one hit to the next; it returns to the next instruction. */
static void on_signal(int sig, [[maybe_unused]] void *info, struct ucontext *u)
{
	struct sigcontext *c = &u->uc_mcontext;
	u64 mid = (u64)scratch + SCRATCH_SIZE / 2, *r = (u64 *)c;

	if (probe >= 0)
		hit(sig, c);
	probe = -1;
	while (shared->next < count && !ask())
		;
	if (shared->next >= count)
		finish();
	for (int i = 0; i < 16; i++)	/* r8 to r15, di, si, bp, bx, dx, ax, cx, sp */
		r[i] = mid;
	c->rip = (u64)(text + list[shared->next]);
	c->eflags = 0x202 | TRAP_FLAG;
	memset(&u->uc_sigmask, 0, sizeof(u->uc_sigmask));
	if (c->fpstate) {
		c->fpstate->cwd = 0x37f;
		c->fpstate->swd = 0;
		c->fpstate->mxcsr = 0x1f80;
	}
	*(u64 *)mid = TRAP_FLAG | 2;	/* for popf */
	before = counted();
}

void restore(void);
asm(".text\nrestore:\n\tmov $15, %eax\n\tsyscall\n");

static void child(const char *function)
{
	static const int signals[] = { 4, 5, 7, 8, 10, 11, 31 };
	struct sigaction a = {
		.sa_handler = (void *)on_signal, .sa_restorer = restore, .sa_mask = -1,
		.sa_flags = 4 | SA_ONSTACK | SA_RESTORER,	/* SA_SIGINFO */
	};
	stack_t stack = { .ss_size = 64 << 10 };
	u64 none = NONE_SIZE;
	long pid;

	text = map(path, TEXT, PROT_READ | PROT_EXEC, &text_size);
	scratch = (char *)must("mmap", SYS(mmap, 0, none, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) + none / 2;
	must("mprotect", SYS(mprotect, scratch, SCRATCH_SIZE, PROT_READ | PROT_WRITE));
	stack.ss_sp = (void *)must("mmap", SYS(mmap, 0, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	must("sigaltstack", SYS(sigaltstack, &stack, 0));
	for (u32 i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		must("rt_sigaction", SYS(rt_sigaction, signals[i], &a, 0, 8));
	counter = must(function, event(kprobe_type, function, 0));
	pid = SYS(getpid);
	SYS(kill, pid, 10);
	SYS(exit_group, 2);
}

/* watch waits for a child, and ends one that comes to no end. */
static void watch(long pid)
{
	struct __kernel_timespec moment = { 0, 20 * 1000 * 1000 };
	u32 at = shared->next;
	int status = 0;

	for (int still = 0; SYS(wait4, pid, &status, WNOHANG) == 0; still++) {
		if (at != shared->next)
			still = 0;
		at = shared->next;
		if (still == 1000)
			SYS(kill, pid, 9);
		SYS(nanosleep, &moment, 0);
	}
	if (status == 1 << 8)
		SYS(exit_group, 1);
	if (shared->next < count) {
		shared->answers[shared->next].state = DIED;
		shared->answers[shared->next++].signal = status & 0x7f;
	}
}

static u64 used;

static void flush(void)
{
	for (u64 at = 0; at < used;)
		at += must("write", SYS(write, 1, buffer + at, used - at));
	used = 0;
}

/* print writes an answer in hexadecimal, one a line; the copy where there is one. */
static void print(const struct answer *a)
{
	const unsigned char *b = (const unsigned char *)a;
	u64 size = a->stepped ? sizeof(*a) : sizeof(*a) - sizeof(a->copy);

	if (used > sizeof(buffer) - 64)
		flush();
	for (u64 i = 0; i < size; i++) {
		buffer[used++] = "0123456789abcdef"[b[i] >> 4];
		buffer[used++] = "0123456789abcdef"[b[i] & 15];
	}
	buffer[used++] = '\n';
}

void start(u64 *args)
{
	char **argv = (char **)(args + 1);
	u64 size;

	if (args[0] < 4)
		fail("want FILE LIST FUNCTION", 22);
	path = argv[1];
	uprobe_type = number_in("/sys/bus/event_source/devices/uprobe/type");
	kprobe_type = number_in("/sys/bus/event_source/devices/kprobe/type");
	list = (const u32 *)map(argv[2], 0, PROT_READ, &size);
	count = size / sizeof(*list);
	size = sizeof(*shared) + count * sizeof(struct answer);
	shared = (struct shared *)must("mmap", SYS(mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	while (shared->next < count) {
		long pid = must("fork", SYS(fork));

		if (pid == 0)
			child(argv[3]);
		watch(pid);
	}
	for (u32 i = 0; i < count; i++)
		print(&shared->answers[i]);
	flush();
	if (shared->different > shared->expected)
		fail("other bytes of the mapping have changed, the last at the offset", shared->where);
	SYS(exit_group, 0);
}
