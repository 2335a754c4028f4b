// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tool with a race on purpose: two workers, each on a processor of its own, count their system calls in one place.
 * Without an argument an update can be lost between the load and the store; with one the update is atomic.
 */
#include "sys.h"
#include <linux/mman.h>

#define EACH	4000

static void print(const char *s)
{
	SYS(write, 1, s, strlen(s));
}

static void number(u64 n)
{
	char digits[21], *p = digits + 20;

	for (*p = 0; p == digits + 20 || n; n /= 10)
		*--p = '0' + n % 10;
	print(p);
}

/* counts[0] is the count, counts[1] how many workers have begun. */
static void work(volatile u64 *counts, u64 cpu, int atomic)
{
	u64 mask = 1 << cpu, n;
	int i;

	SYS(sched_setaffinity, 0, sizeof(mask), &mask);
	__atomic_add_fetch(&counts[1], 1, __ATOMIC_SEQ_CST);
	while (counts[1] < 2)
		SYS(sched_yield);
	for (i = 0; i < EACH; i++) {
		SYS(getppid);
		if (atomic) {
			__atomic_add_fetch(&counts[0], 1, __ATOMIC_SEQ_CST);
			continue;
		}
		n = counts[0];
		if (n >= 2 * EACH)
			break;
		counts[0] = n + 1;
	}
}

void start(long *stack)
{
	volatile u64 *counts;
	long pid;

	counts = (void *)SYS(mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = SYS(fork);
	work(counts, pid == 0, stack[0] > 1);
	if (pid == 0)
		for (;;)
			SYS(exit_group, 0);
	SYS(wait4, pid, 0, 0, 0);
	print("counted ");
	number(counts[0]);
	print(" of ");
	number(2 * EACH);
	print("\n");
	for (;;)
		SYS(exit_group, counts[0] != 2 * EACH);
}
