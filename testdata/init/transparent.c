// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a program without probes, with a uprobe at each offset that LIST has (numbers of
 * 32 bits), one at a time, and with all of them at once; offsets with the highest bit set are not tried alone, those with the
 * next one, nops that become calls, are tried together apart from the others. Exit status, output and
 * memory at the exit have to be as without probes. Writes a line for each run:
 *
 *	program STATUS WORDS MASKED OUTPUT	without probes, the output in hexadecimal
 *	control DIFFERENT			with other random bytes from the kernel
 *	OFFSET HITS DIFFERENT			with one probe, or its errno as minus HITS
 *	together HITS DIFFERENT			with all but nops that become calls
 *	calls HITS DIFFERENT			with those
 *
 * Memory is compared by words of 8 bytes. Those that differ between runs without
 * probes (numbers of processes, times, what getrandom gave) are masked: left out.
 */
#include "sys.h"
#include <linux/mman.h>
#include <linux/perf_event.h>
#include <linux/personality.h>
#include <linux/ptrace.h>
#include <linux/resource.h>

/* In what a run was different. */
enum { STATUS = 1, OUTPUT = 2, MAPS = 4, MEMORY = 8 };

#define MOST_WORDS	(16ul << 20 >> 3)
#define PAGE		4096ul
#define PAGE_WORDS	(PAGE / 8)
#define PLAIN_RUNS	4
#define NOT_ALONE	(1u << 31)
#define AS_CALL		(1u << 30)
#define OFFSET(n)	((n) & ~(NOT_ALONE | AS_CALL))
#define AT_RANDOM	25

static const char *program;
static const u32 *list;
static u32 count;
static int uprobe_type, kprobe_type, out_pipe[2], go_pipe[2];

/* What a run shows. */
struct shown {
	u64 status, output_size, maps_size, words;
	char output[1 << 16], maps[1 << 13];
};

static struct shown want, got;
static u64 *memory, *now, *mask;
/* For each page, whether it is the process's own: an unwritten page of a file is not. */
static unsigned char *was_own, *is_own;
static char line[(1 << 17) + 128];
static u64 used;

static void put(const char *s)
{
	u64 n = strlen(s);

	memcpy(line + used, s, n);
	used += n;
}

static void put_number(long n)
{
	char digits[24];
	int i = 24;
	u64 v = n < 0 ? -n : n;

	do
		digits[--i] = '0' + v % 10;
	while (v /= 10);
	if (n < 0)
		digits[--i] = '-';
	memcpy(line + used, digits + i, 24 - i);
	used += 24 - i;
	line[used++] = ' ';
}

static void end_line(int fd)
{
	line[used - 1] = '\n';
	for (u64 at = 0; at < used;)
		at += SYS(write, fd, line + at, used - at);
	used = 0;
}

static void fail(const char *what, long err)
{
	used = 0;
	put(what);
	put(": error ");
	put_number(-err);
	end_line(2);
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
	char text[16] = { 0 };
	int n = 0;

	whole(name, text, sizeof(text) - 1);
	for (const char *s = text; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + *s - '0';
	return n;
}

/* event counts what meets a probe, in all processes. One that is disabled has its probe, too. */
static long event(int type, const char *name, u64 offset, int disabled)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.type = type;
	attr.size = sizeof(attr);
	attr.config1 = (u64)name;
	attr.config2 = offset;
	attr.disabled = disabled;
	return SYS(perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

static u64 counted(int fd)
{
	u64 n = 0;

	must("a count", SYS(read, fd, &n, sizeof(n)));
	return n;
}

/* file_of opens a file of a process in /proc. */
static int file_of(long pid, const char *name, int flags)
{
	u64 from = used;
	int fd;

	put("/proc/");
	put_number(pid);
	line[used - 1] = '/';
	put(name);
	line[used] = 0;
	fd = must(name, SYS(open, line + from, flags));
	used = from;
	return fd;
}

static void child(void)
{
	static char *args[] = { "prog", "arg", 0 }, *env[] = { "NAME=value", 0 };
	char go;

	SYS(read, go_pipe[0], &go, 1);
	SYS(dup2, out_pipe[1], 1);
	SYS(dup2, out_pipe[1], 2);
	SYS(personality, ADDR_NO_RANDOMIZE);
	SYS(execve, program, args, env);
	SYS(exit_group, 127);
}

/* stop waits for the next stop of a process: its event, or 0 when it has ended. */
static int stop(long pid)
{
	for (;;) {
		int status = 0, event;

		must("wait4", SYS(wait4, pid, &status, 0x40000000));	/* __WALL */
		if ((status & 0xff) != 0x7f)
			return 0;
		if ((event = status >> 16))
			return event;
		SYS(ptrace, PTRACE_CONT, pid, 0, status >> 8);
	}
}

/* seed replaces the random bytes at AT_RANDOM, which the kernel has chosen, by the given byte. */
static void seed(long pid, char byte)
{
	u64 v[2];
	char random[16];
	int fd = file_of(pid, "auxv", O_RDONLY);

	memset(random, byte, sizeof(random));
	while (SYS(read, fd, v, sizeof(v)) == sizeof(v) && v[0] != AT_RANDOM)
		;
	SYS(close, fd);
	fd = file_of(pid, "mem", O_RDWR);
	must("AT_RANDOM", SYS(pwrite64, fd, random, sizeof(random), v[1]));
	SYS(close, fd);
}

static int begins(const char *s, const char *end, const char *with)
{
	while (*with && s < end && *s == *with)
		s++, with++;
	return !*with;
}

/* number reads a hexadecimal number. */
static u64 number(const char **s)
{
	u64 n = 0;

	for (;; ++*s) {
		char c = **s;

		if (c >= '0' && c <= '9')
			n = n << 4 | (c - '0');
		else if (c >= 'a' && c <= 'f')
			n = n << 4 | (c - 'a' + 10);
		else
			return n;
	}
}

/*
 * own says of pages whether they are the process's own (Documentation/admin-guide/mm/pagemap.rst): the
 * others have what their file has, or nothing yet.
 */
static void own(int pagemap, u64 from, u64 pages, unsigned char *to)
{
	static u64 entries[MOST_WORDS / PAGE_WORDS];

	if (SYS(pread64, pagemap, entries, pages * 8, from / PAGE * 8) != (long)pages * 8)
		fail("pagemap", -5);
	for (u64 i = 0; i < pages; i++)
		to[i] = (entries[i] >> 61 & 5) == 4;	/* present, and of no file */
}

/*
 * look reads maps and the memory that they say, without what is not the program's: the XOL area,
 * and what the kernel's clock writes. A page that is not the process's own, and was not
 * without probes, is as it was.
 */
static void look(long pid, struct shown *o)
{
	static char text[sizeof(o->maps)];
	int fd = file_of(pid, "maps", O_RDONLY), mem = file_of(pid, "mem", O_RDONLY), pagemap = file_of(pid, "pagemap", O_RDONLY);
	u64 size = 0;
	long r;

	while (size < sizeof(text) && (r = SYS(read, fd, text + size, sizeof(text) - size)) > 0)
		size += r;
	SYS(close, fd);
	o->maps_size = o->words = 0;
	for (const char *at = text, *end = text + size; at < end;) {
		const char *s = at, *next = at, *name;
		u64 from, to, page = o->words / PAGE_WORDS;

		while (next < end && *next++ != '\n')
			;
		from = number(&s);
		s++;
		to = number(&s);
		for (name = next; name > s && name[-1] != ' '; name--)
			;
		if (!begins(name, next, "[uprobes") && !begins(name, next, "[v") && s[1] == 'r') {
			memcpy(o->maps + o->maps_size, at, next - at);
			o->maps_size += next - at;
			if (o->words + (to - from) / 8 > MOST_WORDS)
				fail("the program has too much memory", -12);
			own(pagemap, from, (to - from) / PAGE, is_own + page);
			for (; from < to; from += PAGE, o->words += PAGE_WORDS, page++)
				if ((o == &want || was_own[page] || is_own[page]) && SYS(pread64, mem, now + o->words, PAGE, from) != PAGE)
					fail("mem", -5);
		}
		at = next;
	}
	SYS(close, mem);
	SYS(close, pagemap);
}

/* run runs the program; probe is closed at its end, before its memory is looked at. */
static void run(struct shown *o, char random, void (*unprobe)(void))
{
	long pid, r;
	int how;

	pid = must("fork", SYS(fork));
	if (pid == 0)
		child();
	must("PTRACE_SEIZE", SYS(ptrace, PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL));
	SYS(write, go_pipe[1], "", 1);
	while ((how = stop(pid)) != 0) {
		if (how == PTRACE_EVENT_EXEC)
			seed(pid, random);
		if (how == PTRACE_EVENT_EXIT) {
			must("PTRACE_GETEVENTMSG", SYS(ptrace, PTRACE_GETEVENTMSG, pid, 0, &o->status));
			if (unprobe)
				unprobe();
			look(pid, o);
		}
		SYS(ptrace, PTRACE_CONT, pid, 0, 0);
	}
	o->output_size = 0;
	while ((r = SYS(read, out_pipe[0], o->output + o->output_size, sizeof(o->output) - o->output_size)) > 0)
		o->output_size += r;
}

static int same(const char *a, u64 size, const char *b, u64 other)
{
	if (size != other)
		return 0;
	for (u64 i = 0; i < size; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/* different says in what the last run was not as one without probes. */
static int different(void)
{
	int d = 0;

	if (got.status != want.status)
		d |= STATUS;
	if (!same(got.output, got.output_size, want.output, want.output_size))
		d |= OUTPUT;
	if (!same(got.maps, got.maps_size, want.maps, want.maps_size))
		return d | MAPS;
	for (u64 page = 0; page < want.words / PAGE_WORDS; page++) {
		if (!was_own[page] && !is_own[page])
			continue;
		for (u64 i = page * PAGE_WORDS; i < (page + 1) * PAGE_WORDS; i++)
			if ((memory[i] ^ now[i]) & mask[i])
				return d | MEMORY;
	}
	return d;
}

/* plain runs the program without probes, and masks what is never the same. */
static void plain(void)
{
	struct __kernel_timespec moment = { 1, 100 * 1000 * 1000 };
	u64 masked = 0;

	run(&want, 'r', 0);
	memcpy(memory, now, want.words * 8);
	memcpy(was_own, is_own, want.words / PAGE_WORDS);
	memset(mask, -1, want.words * 8);
	for (int i = 1; i < PLAIN_RUNS; i++) {
		SYS(nanosleep, &moment, 0);
		run(&got, 'r', 0);
		if (different() & ~MEMORY)
			fail("runs without probes differ", -different());
		for (u64 w = 0; w < want.words; w++)
			if ((was_own[w / PAGE_WORDS] || is_own[w / PAGE_WORDS]) && memory[w] != now[w])
				mask[w] = 0;
	}
	for (u64 w = 0; w < want.words; w++)
		masked += !mask[w];
	put("program ");
	put_number(want.status);
	put_number(want.words);
	put_number(masked);
	for (u64 i = 0; i < want.output_size; i++) {
		line[used++] = "0123456789abcdef"[want.output[i] >> 4 & 15];
		line[used++] = "0123456789abcdef"[want.output[i] & 15];
	}
	used++;
	end_line(1);
	run(&got, 's', 0);
	put("control ");
	put_number(different());
	end_line(1);
}

static int probe;
static u64 hits;

static void close_one(void)
{
	hits = counted(probe);
	SYS(close, probe);
}

static void one(u32 offset)
{
	put_number(offset);
	probe = event(uprobe_type, program, offset, 0);
	if (probe < 0) {
		put_number(probe);
		put_number(0);
	} else {
		run(&got, 'r', close_one);
		put_number(hits);
		put_number(different());
	}
	end_line(1);
}

static int *probes, traps;
static u32 registered;

static void close_all(void)
{
	hits = counted(traps);
	for (u32 i = 0; i < registered; i++)
		SYS(close, probes[i]);
	SYS(close, traps);
}

static void together(const char *name, const char *function, u32 which)
{
	struct rlimit files = { count + 64, count + 64 };

	must("RLIMIT_NOFILE", SYS(prlimit64, 0, RLIMIT_NOFILE, &files, 0));
	traps = must(function, event(kprobe_type, function, 0, 0));
	registered = 0;
	for (u32 i = 0; i < count; i++)
		if ((list[i] & AS_CALL) == which)
			probes[registered++] = must("a uprobe", event(uprobe_type, program, OFFSET(list[i]), 1));
	put("all probes are registered ");
	end_line(2);
	run(&got, 'r', close_all);
	put(name);
	put_number(hits);
	put_number(different());
	end_line(1);
}

/* room is memory that a forked process does not get. */
static void *room(u64 size)
{
	long at = must("mmap", SYS(mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

	must("madvise", SYS(madvise, at, size, MADV_DONTFORK));
	return (void *)at;
}

void start(u64 *args)
{
	char **argv = (char **)(args + 1);
	int fd;

	if (args[0] < 4)
		fail("want PROGRAM LIST FUNCTION", -22);
	program = argv[1];
	uprobe_type = number_in("/sys/bus/event_source/devices/uprobe/type");
	kprobe_type = number_in("/sys/bus/event_source/devices/kprobe/type");
	fd = must(argv[2], SYS(open, argv[2], O_RDONLY));
	count = must(argv[2], SYS(lseek, fd, 0, 2)) / sizeof(*list);
	list = (const u32 *)must(argv[2], SYS(mmap, 0, count * sizeof(*list), PROT_READ, MAP_PRIVATE, fd, 0));
	memory = room(MOST_WORDS * 8);
	now = room(MOST_WORDS * 8);
	mask = room(MOST_WORDS * 8);
	was_own = room(MOST_WORDS / PAGE_WORDS);
	is_own = room(MOST_WORDS / PAGE_WORDS);
	probes = room(count * sizeof(*probes));
	must("pipe2", SYS(pipe2, out_pipe, O_CLOEXEC));
	must("F_SETFL", SYS(fcntl, out_pipe[0], F_SETFL, O_NONBLOCK));
	must("pipe2", SYS(pipe2, go_pipe, O_CLOEXEC));
	plain();
	together("together ", argv[3], 0);
	together("calls ", argv[3], AS_CALL);
	for (u32 i = 0; i < count; i++)
		if (!(list[i] & NOT_ALONE))
			one(OFFSET(list[i]));
	SYS(exit_group, 0);
}
