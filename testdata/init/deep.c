// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with frame pointers and symbols that makes its system calls at known
 * depths, each so many times that no two counts are equal: what a script should
 * count is known. It sleeps at its end, so that who asks for its symbols while it
 * runs has them.
 */
#include "sys.h"
#include <linux/time.h>

static const char dir[] = "/tmp/deep";

/* A number that the compiler does not know: it shall not write a loop out. */
static inline int hidden(int n)
{
	asm volatile("" : "+r"(n));
	return n;
}

static __attribute__((noinline)) long inner(const char *path)
{
	long r = SYS(mkdir, path, 0755);

	SYS(rmdir, path);
	return r;
}

static __attribute__((noinline)) long middle(const char *path)
{
	return inner(path) + 1;
}

static __attribute__((noinline)) long outer(const char *path)
{
	long r = 0;

	for (int i = hidden(4); i > 0; i--)
		r += middle(path);
	for (int i = hidden(3); i > 0; i--)
		r += inner(path);
	return r;
}

/* An address of code as an argument. */
static __attribute__((noinline)) long asks(void)
{
	return SYS(access, (const char *)middle, 0) + 1;
}

/* Numbers as arguments: the nth n times. */
static __attribute__((noinline)) long counts(void)
{
	static const int masks[] = { 18, 1, 2, 3, 5, 8, 13, 63, 64, 511 };
	long r = 0;

	for (int i = 0; i < 10; i++)
		for (int n = 0; n <= i; n++)
			r += SYS(umask, masks[i]);
	return r;
}

/* A file, by its name and when it has none any more. */
static __attribute__((noinline)) void file(void)
{
	static const char name[] = "/tmp/deepfile";
	long fd = SYS(open, name, 0102, 0600); /* O_RDWR | O_CREAT */

	SYS(truncate, name, 7);
	SYS(unlink, name);
	SYS(close, fd);
}

void start(void)
{
	struct __kernel_timespec while_asked = { 2, 0 };

	outer(dir);
	for (int i = hidden(2); i > 0; i--)
		inner(dir);
	inner(dir);
	asks();
	counts();
	file();
	SYS(nanosleep, &while_asked, 0);
	SYS(exit_group, 0);
}
