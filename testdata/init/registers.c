// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asks the kernel for hardware breakpoints as its standard input says, and prints what
 * each answer is, a line each: a negative errno, or 0, or the word that was read. For
 * make conformance-watch.
 */
#include "sys.h"
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <asm/ptrace-abi.h>
#include <linux/ptrace.h>

/* One question; package internal/breakpoints writes them. */
struct ask {
	u64 what, n, task, cpu, type, len, addr, flags;
};

enum { OPEN, CLOSE, FORK, KILL, POKE, PEEK, USER, PARANOID, ONLINE, END };
enum { EXCLUDE_KERNEL = 1 };
enum { TASKS = 8, OTHERS = 5, EVENTS = 64, OTHER = 1000, NOBODY = 65534 };

static long child[TASKS]; /* 0: this program */
static long fd[EVENTS]; /* 0: none */

/* A task that waits for its debugger; from OTHERS on, it is another user's. */
static long fork_traced(long n)
{
	long pid = SYS(fork);
	int status = 0;

	if (!pid) {
		pid = SYS(getpid);
		for (int i = 0; i < EVENTS; i++)
			if (fd[i])
				SYS(close, fd[i]);
		if (n >= OTHERS)
			SYS(setresuid, OTHER, OTHER, OTHER);
		SYS(ptrace, PTRACE_TRACEME);
		SYS(kill, pid, SIGSTOP);
		SYS(exit_group, 0);
	}
	if (pid < 0)
		return pid;
	child[n] = pid;
	SYS(wait4, pid, &status);
	return 0;
}

static long kill_traced(long n)
{
	int status = 0;

	SYS(kill, child[n], SIGKILL);
	SYS(wait4, child[n], &status);
	return 0;
}

static long open_event(const struct ask *a)
{
	struct perf_event_attr attr;
	long r, pid = (long)a->task < 0 ? -1 : child[a->task];

	memset(&attr, 0, sizeof attr);
	attr.type = PERF_TYPE_BREAKPOINT;
	attr.size = sizeof attr;
	attr.disabled = 1;
	attr.exclude_kernel = a->flags & EXCLUDE_KERNEL;
	attr.bp_type = a->type;
	attr.bp_addr = a->addr;
	attr.bp_len = a->len;
	r = SYS(perf_event_open, &attr, pid, (int)a->cpu, -1, 0);
	fd[a->n] = r < 0 ? 0 : r;
	return r < 0 ? r : 0;
}

static long close_event(long n)
{
	long f = fd[n];

	fd[n] = 0;
	return f ? SYS(close, f) : 0;
}

static long set_paranoid(long v)
{
	char text[4] = { '0' + v, '\n' };
	long r, f = SYS(open, "/proc/sys/kernel/perf_event_paranoid", O_WRONLY);

	if (f < 0)
		return f;
	r = SYS(write, f, text, 2);
	SYS(close, f);
	return r < 0 ? r : 0;
}

static long set_online(long cpu, long v)
{
	char name[] = "/sys/devices/system/cpu/cpu0/online";
	long r, f;

	name[sizeof "/sys/devices/system/cpu/cpu" - 1] += cpu;
	SYS(mkdir, "/sys", 0755);
	SYS(mount, "sysfs", "/sys", "sysfs", 0, 0);
	f = SYS(open, name, O_WRONLY);
	if (f < 0)
		return f;
	r = SYS(write, f, v ? "1" : "0", 1);
	SYS(close, f);
	return r < 0 ? r : 0;
}

static long answer(const struct ask *a)
{
	long r, word = 0;

	switch (a->what) {
	case OPEN:
		return open_event(a);
	case CLOSE:
		return close_event(a->n);
	case FORK:
		return fork_traced(a->task);
	case KILL:
		return kill_traced(a->task);
	case POKE:
		return SYS(ptrace, PTRACE_POKEUSR, child[a->task], a->addr, a->len);
	case PEEK:
		r = SYS(ptrace, PTRACE_PEEKUSR, child[a->task], a->addr, &word);
		return r < 0 ? r : word;
	case USER:
		r = SYS(setresuid, -1, a->n ? NOBODY : 0, -1);
		SYS(prctl, PR_SET_DUMPABLE, 1); /* so that new tasks are not out of reach for this alone */
		return r;
	case PARANOID:
		return set_paranoid(a->n);
	case ONLINE:
		return set_online(a->cpu, a->n);
	}
	return 0;
}

static char out[4096];
static u64 used;

static void flush(void)
{
	SYS(write, 1, out, used);
	used = 0;
}

static void print(long v)
{
	char digits[24];
	int n = 0;
	u64 u = v < 0 ? -(u64)v : (u64)v;

	if (used + sizeof digits + 2 > sizeof out)
		flush();
	do
		digits[n++] = '0' + u % 10;
	while (u /= 10);
	if (v < 0)
		out[used++] = '-';
	while (n)
		out[used++] = digits[--n];
	out[used++] = '\n';
}

void start(void)
{
	struct ask a;

	while (SYS(read, 0, &a, sizeof a) == sizeof a && a.what < END)
		print(answer(&a));
	flush();
	SYS(exit_group, 0);
}
