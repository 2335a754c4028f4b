/* SPDX-License-Identifier: GPL-2.0-only */
/* What the programs here need of the kernel's ABI, without a libc. */
#include <linux/fcntl.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <asm/errno.h>
#include <asm/unistd.h>

typedef unsigned int u32;
typedef unsigned long u64;

/* The result, or a negative errno. */
long syscall(long number, long a, long b, long c, long d, long e, long f);

/* Missing arguments are 0; pointers and numbers are both fine. */
#define SYS6(n, a, b, c, d, e, f, ...)	syscall(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define SYS(n, ...)	SYS6(n, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)

static inline u64 strlen(const char *s)
{
	u64 n = 0;

	while (s[n])
		n++;
	return n;
}

void *memset(void *p, int c, u64 n);
void *memcpy(void *to, const void *from, u64 n);
