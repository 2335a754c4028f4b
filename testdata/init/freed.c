// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the scenario disarmed-unregister finds, on a booted kernel: a task is
 * preempted in the detour buffer of a probe, before its call; a neighbour undoes
 * the jump, and the probe is disabled, unregistered, and its memory given to
 * another probe. The task goes on, and that one is hit, where nothing calls it.
 *
 *	freed P Q Z ROUNDS
 *
 * P is a place in umask's function that is optimized, Q one that its jump covers,
 * Z one in a function that nothing here calls. It needs a kernel that preempts
 * itself (preempt=full), and one processor. The exit code is 1 when Z was hit.
 */
#include "sys.h"

#define TRACING "/sys/kernel/tracing/"
#define BUFFERS 0xffffffffc0000000ul	/* detour buffers are where modules are, */
#define SLOT 0x7c	/* so many bytes each, */
#define CALL 0x30	/* and call at this offset */

static char text[1 << 16], words[256];

static void say(const char *s, u64 n)
{
	SYS(write, 1, s, n);
}

static char *add(char *to, const char *s)
{
	u64 n = strlen(s);

	memcpy(to, s, n);
	to[n] = 0;
	return to + n;
}

static char *add_number(char *to, u64 n, u32 base)
{
	char digits[24];
	int i = sizeof digits - 1;

	digits[i] = 0;
	do
		digits[--i] = "0123456789abcdef"[n % base];
	while (n /= base);
	return add(to, digits + i);
}

static u64 number(const char *s, u32 base)
{
	u64 n = 0;

	for (;; s++) {
		u32 digit = *s >= 'a' && *s <= 'f' ? *s - 'a' + 10u : (u32)*s - '0';

		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

static char *find(char *in, const char *what)
{
	u64 n = strlen(what);

	for (; *in; in++) {
		u64 i = 0;

		while (i < n && in[i] == what[i])
			i++;
		if (i == n)
			return in;
	}
	return 0;
}

static void read_all(const char *path)
{
	long fd = SYS(open, path, O_RDONLY), n, all = 0;

	while (fd >= 0 && all < (long)sizeof text - 1 && (n = SYS(read, fd, text + all, sizeof text - 1 - all)) > 0)
		all += n;
	text[all] = 0;
	SYS(close, fd);
}

/* Writes a line to a file of the kernel's, and ends the program where that is refused. */
static void put(const char *path, const char *a, const char *b)
{
	long fd = SYS(open, path, O_WRONLY | O_APPEND), n;

	add(add(words, a), b);
	n = SYS(write, fd, words, strlen(words));
	SYS(close, fd);
	if (n >= 0)
		return;
	add(add_number(add(add(words, path), " refuses it: errno "), -n, 10), "\n");
	say(words, strlen(words));
	SYS(kill, 0, SIGKILL);
}

static void sleep_ns(long ns)
{
	struct __kernel_timespec t = { ns / 1000000000, ns % 1000000000 };

	SYS(nanosleep, &t, 0);
}

/* Runs when nobody else wants to, and calls umask; sleeps at times, for the optimizer waits for that. */
static void hits(void)
{
	int priority = 0;

	SYS(sched_setscheduler, 0, SCHED_IDLE, &priority);
	for (u64 i = 0;; i++) {
		SYS(umask, 022);
		if (i % 2000 == 0)
			sleep_ns(1000);
	}
}

/* Where the task was preempted, if that is in a buffer. */
static u64 place(long task)
{
	char path[40], *at;

	add(add_number(add(path, "/proc/"), task, 10), "/stack");
	read_all(path);
	at = find(text, "0xffffffffc");
	return at ? number(at + 2, 16) : 0;
}

void start(long *stack)
{
	char **arg = (char **)stack + 2;
	u64 rounds = stack[0] > 4 ? number(arg[3], 10) : 5, seed = 1, bad = 0;
	long task, hog;
	int priority = 10;

	if (stack[0] < 4)
		SYS(exit_group, 2);
	put("/proc/sys/kernel/sched_rt_runtime_us", "-1", "");
	task = SYS(fork);
	if (!task)
		hits();
	hog = SYS(fork);
	if (!hog)
		for (;;)
			;
	SYS(kill, hog, SIGSTOP);
	SYS(sched_setscheduler, 0, SCHED_FIFO, &priority);
	for (u64 round = 0; round < rounds; round++) {
		u64 at = 0, first = 0;

		put(TRACING "kprobe_events", "p:q ", arg[1]);
		put(TRACING "kprobe_events", "p:p ", arg[0]);
		put(TRACING "events/kprobes/p/enable", "1", "");
		for (int i = 0; i < 200 && !first; i++) {
			sleep_ns(10000000);
			read_all("/sys/kernel/debug/kprobes/list");
			first = !!find(text, "[OPTIMIZED]");
		}
		/* 1. The task is preempted in the buffer, before its call. */
		put(TRACING "tracing_on", "0", "");
		for (int i = 0; i < 400000; i++) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			sleep_ns(300000 + (seed >> 33) % 300000);
			at = place(task);
			if (at >= BUFFERS && at % 4096 % SLOT < CALL)
				break;
			at = 0;
		}
		if (!at) {
			add(words, first ? "not preempted in the buffer before its call\n" : "not optimized\n");
			say(words, strlen(words));
			break;
		}
		add(add_number(add(words, "preempted in the buffer at 0x"), at, 16), "\n");
		say(words, strlen(words));
		/* 2. It stays so: what waits for a grace period lets the hog run. */
		SYS(kill, hog, SIGCONT);
		/* 3. The neighbour undoes the jump; the probe is freed; its memory becomes another's. */
		put(TRACING "events/kprobes/q/enable", "1", "");
		put(TRACING "events/kprobes/p/enable", "0", "");
		put(TRACING "kprobe_events", "-:p", "");
		put(TRACING "kprobe_events", "p:z ", arg[2]);
		put(TRACING "events/kprobes/z/enable", "1", "");
		put(TRACING "tracing_on", "1", "");
		/* 4. It goes on. */
		SYS(kill, hog, SIGSTOP);
		sleep_ns(20000000);
		read_all(TRACING "trace");
		char *z = find(text, " z: ");

		if (z) {
			char *end = find(z, "\n");

			bad++;
			while (z > text && z[-1] != '\n')
				z--;
			say(z, end + 1 - z);
		}
		put(TRACING "events/kprobes/enable", "0", "");
		put(TRACING "kprobe_events", "-:z", "");
		put(TRACING "kprobe_events", "-:q", "");
		long emptied = SYS(open, TRACING "trace", O_WRONLY | O_TRUNC);

		SYS(close, emptied);
	}
	add(add_number(add(words, "hits of what nothing calls: "), bad, 10), "\n");
	say(words, strlen(words));
	SYS(kill, task, SIGKILL);
	SYS(kill, hog, SIGKILL);
	SYS(exit_group, bad != 0);
}
