// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that makes each of its system calls once, with arguments of both signs, files that are there and one
 * that is not, and sleeps after each: who prints what a handler asked for has caught up before the next one runs.
 */
#include "sys.h"
#include <linux/time.h>

static void rest(void)
{
	struct __kernel_timespec asked = { 0, 20000000 };

	SYS(nanosleep, &asked, 0);
}

void start(void)
{
	static const char name[] = "/tmp/values-file", none[] = "/none/of that name";
	char text[] = "some \x01\xff bytes\n";
	long fd;

	SYS(close_range, 3, ~0U, 0); /* what bpftrace 0.27 leaves open */
	fd = SYS(openat, -100, name, 0102, 0640); /* AT_FDCWD, O_RDWR | O_CREAT */
	rest();
	SYS(mkdir, none, 0700);
	rest();
	SYS(write, fd, text, sizeof(text));
	rest();
	SYS(lseek, fd, -3, 2); /* SEEK_END */
	rest();
	SYS(read, fd, text, 2);
	rest();
	SYS(close, -1);
	rest();
	SYS(unlink, name);
	rest();
	SYS(umask, 027);
	SYS(exit_group, 0);
}
