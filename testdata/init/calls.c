// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program of many system calls. It prints what each returns, in a form that
 * is the same wherever the kernel does the same: a negative errno, a number of
 * bytes, a descriptor; never a pointer, a time or a process's number. It
 * leaves the machine as it was.
 */
#include "sys.h"
#include <linux/eventpoll.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <linux/in.h>
#include <linux/inotify.h>
#include <linux/ipc.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <linux/msg.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sem.h>
#include <linux/socket.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/timerfd.h>
#include <linux/uio.h>
#include <linux/un.h>
#include <linux/utsname.h>

#define PAGE		4096
#define AF_UNIX		1
#define AF_INET		2
#define SOCK_STREAM	1
#define SOCK_DGRAM	2
#define SOL_SOCKET	1
#define SO_REUSEADDR	2
#define SO_TYPE		3

long thread(long flags, void *stack_end, int *tid, void (*run)(void));
void signal_return(void);
long try_read(volatile char *p);
long try_write(volatile char *p);
void try_failed(void);
long vfork_exit(int status);

/* Which system calls were made, by number. */
static char made[512];
static char line[256];
static int length;

static void put(const char *s)
{
	while (*s && length < (int)sizeof(line) - 1)
		line[length++] = *s++;
}

static void put_number(long v)
{
	char digits[24];
	int n = 0;
	u64 u = v < 0 ? -(u64)v : (u64)v;

	if (v < 0)
		put("-");
	do
		digits[n++] = '0' + u % 10;
	while (u /= 10);
	while (n)
		line[length++] = digits[--n];
}

static void end(void)
{
	line[length++] = '\n';
	SYS(write, 1, line, length);
	length = 0;
}

static void print(const char *what, long v)
{
	put(what);
	put(" = ");
	put_number(v);
	end();
}

static void print_text(const char *what, const char *text)
{
	put(what);
	put(" = \"");
	put(text);
	put("\"");
	end();
}

/* say prints a call's result, and returns it. */
static long say(int number, const char *name, const char *how, long r)
{
	made[number] = 1;
	put(name);
	if (*how) {
		put(" ");
		put(how);
	}
	print("", r);
	return r;
}

/* done is for a result that is a number of the machine's own: only its sign counts. */
static long done(int number, const char *name, const char *how, long r)
{
	say(number, name, how, r > 0 ? 1 : r);
	return r;
}

#define T(how, name, ...)	say(__NR_##name, #name, how, SYS(name, ##__VA_ARGS__))
#define D(how, name, ...)	done(__NR_##name, #name, how, SYS(name, ##__VA_ARGS__))

static int same(const char *a, const char *b, u64 n)
{
	while (n && *a == *b)
		a++, b++, n--;
	return n == 0;
}

static char buffer[2 * PAGE] __attribute__((aligned(PAGE)));
static char *bad = (char *)0x10;

static void files(void)
{
	struct iovec v[2] = { { "one ", 4 }, { "two", 3 } };
	struct statx x;
	long fd, dir, other;

	T("", mkdir, "/tmp/calls", 0755);
	T("again", mkdir, "/tmp/calls", 0755);
	T("", chdir, "/tmp/calls");
	D("", getcwd, buffer, sizeof(buffer));
	print_text("cwd", buffer);
	T("missing", openat, AT_FDCWD, "missing", O_RDONLY);
	T("bad name", openat, AT_FDCWD, bad, O_RDONLY);
	T("folder for writing", openat, AT_FDCWD, ".", O_WRONLY);
	T("", umask, 022);
	fd = T("new", openat, AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0666);
	T("exclusive", openat, AT_FDCWD, "file", O_RDWR | O_CREAT | O_EXCL, 0666);
	T("", write, fd, "hello, world", 12);
	T("bad buffer", write, fd, bad, 12);
	T("bad descriptor", write, 99, "x", 1);
	T("", pwrite64, fd, "W", 1, 7);
	T("", lseek, fd, 7, SEEK_SET);
	T("whence", lseek, fd, 0, 77);
	memset(buffer, 0, 64);
	T("", read, fd, buffer, 64);
	print_text("read", buffer);
	T("at the end", read, fd, buffer, 64);
	T("bad buffer", pread64, fd, bad, 5, 0);
	memset(buffer, 0, 64);
	T("", pread64, fd, buffer, 5, 0);
	print_text("read", buffer);
	T("", writev, fd, v, 2);
	T("", lseek, fd, 0, SEEK_SET);
	v[0].iov_base = buffer;
	v[1].iov_base = buffer + 64;
	v[0].iov_len = 12;
	v[1].iov_len = 64;
	memset(buffer, 0, 128);
	T("", readv, fd, v, 2);
	print_text("second", buffer + 64);
	T("", ftruncate, fd, 5);
	T("", fallocate, fd, 0, 0, 8192);
	T("", truncate, "file", 6);
	T("", fsync, fd);
	T("", fdatasync, fd);
	T("", statx, AT_FDCWD, "file", 0, STATX_BASIC_STATS, &x);
	print("size", x.stx_size);
	print("mode", x.stx_mode);
	T("", fchmod, fd, 0640);
	T("", chmod, "file", 04600);
	T("", fchown, fd, 7, 8);
	T("", fchownat, AT_FDCWD, "file", 9, -1, 0);
	T("", statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &x);
	print("mode", x.stx_mode);
	print("owner", x.stx_uid);
	print("group", x.stx_gid);
	T("", access, "file", 4);
	T("missing", faccessat, AT_FDCWD, "missing", 4);
	T("", link, "file", "hard");
	T("again", link, "file", "hard");
	T("", symlink, "file", "soft");
	T("", symlink, "loop", "loop");
	T("loop", openat, AT_FDCWD, "loop", O_RDONLY);
	memset(buffer, 0, 64);
	T("", readlink, "soft", buffer, 64);
	print_text("link", buffer);
	T("no link", readlink, "file", buffer, 64);
	T("", rename, "hard", "harder");
	T("missing", renameat, AT_FDCWD, "hard", AT_FDCWD, "x");
	T("no replace", renameat2, AT_FDCWD, "harder", AT_FDCWD, "file", 1);
	T("not a folder", openat, AT_FDCWD, "file/x", O_RDONLY);
	T("", utimensat, AT_FDCWD, "file", 0, 0);
	T("", setxattr, "file", "trusted.calls", "value", 5, 0);
	memset(buffer, 0, 64);
	T("", getxattr, "file", "trusted.calls", buffer, 64);
	T("missing", getxattr, "file", "trusted.other", buffer, 64);
	T("", listxattr, "file", buffer, 64);
	T("", removexattr, "file", "trusted.calls");
	T("", flock, fd, 2);
	other = T("", dup, fd);
	T("", dup2, fd, 20);
	T("", dup3, fd, 21, O_CLOEXEC);
	T("same", dup3, fd, fd, 0);
	T("flags of 21", fcntl, 21, F_GETFD);
	T("flags", fcntl, fd, F_GETFL);
	T("", close, other);
	T("again", close, other);
	T("", close_range, 20, 21, 0);
	T("", mkdirat, AT_FDCWD, "folder", 0700);
	T("", mknodat, AT_FDCWD, "folder/fifo", 0010644, 0);
	T("not empty", rmdir, "folder");
	dir = T("", openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY);
	{
		/* Their order is the kernel's own. */
		long n = D("", getdents64, dir, buffer, sizeof(buffer)), at = 0, names = 0, letters = 0;

		for (; at < n; at += *(unsigned short *)(buffer + at + 16), names++)
			letters += strlen(buffer + at + 19);
		print("names", names);
		print("letters", letters);
		T("at the end", getdents64, dir, buffer, sizeof(buffer));
	}
	T("", lseek, fd, 0, SEEK_SET);
	other = T("copy", openat, AT_FDCWD, "copy", O_RDWR | O_CREAT, 0600);
	T("", sendfile, other, fd, 0, 100);
	T("", lseek, fd, 0, SEEK_SET);
	T("", copy_file_range, fd, 0, other, 0, 3, 0);
	T("where", lseek, other, 0, SEEK_CUR);
	T("", close, other);
	T("", fchdir, dir);
	T("a file", chdir, "file");
	T("", close, dir);
	T("", unlink, "copy");
	T("", unlink, "harder");
	T("", unlink, "loop");
	T("", unlinkat, AT_FDCWD, "soft", 0);
	T("a folder", unlink, "folder");
	T("", unlink, "folder/fifo");
	T("folder", unlinkat, AT_FDCWD, "folder", 0x200);
	T("", unlink, "file");
	T("missing", unlink, "file");
	T("", read, fd, buffer, 64);	/* it lives until it is closed */
	T("", close, fd);
	memset(buffer, 'n', 300);
	buffer[300] = 0;
	T("long name", mkdir, buffer, 0700);
	T("", mkdir, "mnt", 0700);
	T("", mount, "calls", "mnt", "tmpfs", 0, 0);
	fd = T("on it", openat, AT_FDCWD, "mnt/x", O_WRONLY | O_CREAT, 0600);
	T("busy", umount2, "mnt", 0);
	T("", close, fd);
	T("", umount2, "mnt", 0);
	T("", rmdir, "mnt");
	T("", sync);
}

static void watches(void)
{
	struct inotify_event *e = (struct inotify_event *)buffer;
	long in = T("", inotify_init1, IN_NONBLOCK), w, fd;

	w = T("", inotify_add_watch, in, ".", IN_CREATE | IN_DELETE);
	T("nothing", read, in, buffer, PAGE);
	fd = T("", openat, AT_FDCWD, "watched", O_WRONLY | O_CREAT, 0600);
	T("", close, fd);
	T("", unlink, "watched");
	T("events", read, in, buffer, PAGE);
	print("mask", e->mask);
	print_text("name", e->name);
	T("", inotify_rm_watch, in, w);
	T("", close, in);
}

static void pipes(void)
{
	struct pollfd p[2];
	struct epoll_event ev = { .events = EPOLLIN, .data = 77 }, got;
	struct __kernel_timespec now = { 0, 0 };
	struct itimerspec soon = { { 0, 0 }, { 0, 1000000 } };
	struct iovec v = { "spliced", 7 };
	int a[2], b[2], n = 0;
	u64 count = 5, broken = 1UL << (SIGPIPE - 1);
	long ep, event, timer;

	T("", pipe2, a, O_NONBLOCK);
	T("", pipe, b);
	T("empty", read, a[0], buffer, 8);
	T("", write, a[1], "through a pipe", 14);
	T("FIONREAD", ioctl, a[0], 0x541b, &n);
	print("bytes", n);
	T("no terminal", ioctl, a[0], 0x5401, buffer);
	T("", tee, a[0], b[1], 7, 0);
	T("", splice, a[0], 0, b[1], 0, 7, 0);
	T("", vmsplice, b[1], &v, 1, 0);
	memset(buffer, 0, 64);
	T("", read, b[0], buffer, 64);
	print_text("read", buffer);
	T("size", fcntl, a[0], 1032 /* F_GETPIPE_SZ */);
	T("seek", lseek, a[0], 0, SEEK_SET);
	p[0] = (struct pollfd){ a[0], POLLIN, 0 };
	p[1] = (struct pollfd){ b[1], POLLOUT, 0 };
	T("", poll, p, 2, 0);
	print("first", p[0].revents);
	print("second", p[1].revents);
	T("", ppoll, p, 1, &now, 0, 8);
	p[0].fd = 99;
	T("bad", poll, p, 1, -1);
	print("events", p[0].revents);
	{
		u64 set[16] = { 1UL << a[0] }, out[16] = { 1UL << b[1] };
		struct __kernel_old_timeval tv = { 0, 0 };

		T("", select, 64, set, out, 0, &tv);
		print("readable", set[0] != 0);
		print("writable", out[0] != 0);
		T("", pselect6, 0, 0, 0, 0, &now, 0);
	}
	T("the rest", read, a[0], buffer, 64);
	ep = T("", epoll_create1, 0);
	T("", epoll_ctl, ep, EPOLL_CTL_ADD, a[0], &ev);
	T("again", epoll_ctl, ep, EPOLL_CTL_ADD, a[0], &ev);
	T("nothing", epoll_wait, ep, &got, 1, 0);
	event = T("", eventfd2, 1, O_NONBLOCK);
	ev.data = 78;
	T("", epoll_ctl, ep, EPOLL_CTL_ADD, event, &ev);
	T("", write, event, &count, 8);
	T("", epoll_wait, ep, &got, 1, -1);
	print("data", got.data);
	T("", read, event, &count, 8);
	print("count", count);
	T("zero", read, event, &count, 8);
	timer = T("", timerfd_create, CLOCK_MONOTONIC, 0);
	ev.data = 79;
	T("", epoll_ctl, ep, EPOLL_CTL_ADD, timer, &ev);
	T("", timerfd_settime, timer, 0, &soon, 0);
	T("timer", epoll_pwait, ep, &got, 1, -1, 0, 8);
	print("data", got.data);
	T("timer", read, timer, &count, 8);
	T("", timerfd_gettime, timer, &soon);
	T("", close, timer);
	T("", close, event);
	T("", close, ep);
	T("", close, a[0]);
	T("", rt_sigprocmask, SIG_BLOCK, &broken, 0, 8);
	T("without a reader", write, a[1], "x", 1);
	T("SIGPIPE", rt_sigtimedwait, &broken, 0, &now, 8);
	T("", rt_sigprocmask, SIG_UNBLOCK, &broken, 0, 8);
	T("", close, a[1]);
	T("", close, b[1]);
	T("without a writer", read, b[0], buffer, 8);
	T("", close, b[0]);
}

struct address { unsigned short family, port; u32 ip; char zero[8]; };	/* struct sockaddr_in */
struct message {	/* struct msghdr */
	void *name;
	int name_size, pad;
	struct iovec *v;
	u64 n;
	void *control;
	u64 control_size;
	u32 flags, pad2;
};

static void sockets(void)
{
	/* 127.0.0.1:4096, in the network's order */
	struct address at = { AF_INET, 0x0010, 0x0100007f, "" }, from;
	int size = sizeof(from), one = 1, pair[2];
	struct { u64 size; int level, type, fd, pad; } rights = { 20, SOL_SOCKET, 1 /* SCM_RIGHTS */, 0, 0 };
	struct iovec v = { "with a descriptor", 17 };
	struct message m = { 0, 0, 0, &v, 1, &rights, sizeof(rights), 0, 0 };
	struct pollfd p;
	long s, c, a;

	T("family", socket, 99, SOCK_STREAM, 0);
	s = T("", socket, AF_INET, SOCK_STREAM, 0);
	T("", setsockopt, s, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	T("", getsockopt, s, SOL_SOCKET, SO_TYPE, &one, &size);
	print("type", one);
	c = T("", socket, AF_INET, SOCK_STREAM, 0);
	T("refused", connect, c, &at, sizeof(at));
	T("not connected", getpeername, c, &from, &size);
	T("", bind, s, &at, sizeof(at));
	T("", listen, s, 5);
	a = T("second", socket, AF_INET, SOCK_STREAM, 0);
	T("in use", bind, a, &at, sizeof(at));
	T("", close, a);
	T("", connect, c, &at, sizeof(at));
	size = sizeof(from);
	a = T("", accept4, s, &from, &size, O_CLOEXEC);
	print("size", size);
	print("family", from.family);
	size = sizeof(from);
	T("", getsockname, a, &from, &size);
	print("port", from.port);
	T("", sendto, c, "over loopback", 13, 0, 0, 0);
	memset(buffer, 0, 64);
	T("", recvfrom, a, buffer, 64, 0, 0, 0);
	print_text("received", buffer);
	T("nothing", recvfrom, a, buffer, 64, 0x40 /* MSG_DONTWAIT */, 0, 0);
	T("", shutdown, c, 1);
	p = (struct pollfd){ a, POLLIN, 0 };
	T("", poll, &p, 1, 1000);
	T("after shutdown", read, a, buffer, 64);
	T("", close, a);
	T("", close, c);
	T("", close, s);
	T("a file", listen, 1, 5);

	s = T("udp", socket, AF_INET, SOCK_DGRAM, 0);
	c = T("udp", socket, AF_INET, SOCK_DGRAM, 0);
	T("udp", bind, s, &at, sizeof(at));
	T("udp", sendto, c, "datagram", 8, 0, &at, sizeof(at));
	size = sizeof(from);
	memset(buffer, 0, 64);
	T("udp", recvfrom, s, buffer, 64, 0, &from, &size);
	print_text("received", buffer);
	T("", close, s);
	T("", close, c);

	T("", socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
	rights.fd = pair[0];
	T("", sendmsg, pair[0], &m, 0);
	memset(buffer, 0, 64);
	v.iov_base = buffer;
	v.iov_len = 64;
	rights.fd = -1;
	T("", recvmsg, pair[1], &m, 0);
	print_text("received", buffer);
	print("descriptor", rights.fd);
	T("", close, rights.fd);
	T("", close, pair[0]);
	T("closed", read, pair[1], buffer, 1);
	T("", close, pair[1]);
}

struct action { void (*handler)(int, void *, void *); u64 flags; void (*restorer)(void); u64 mask; };	/* struct sigaction of the kernel */

static volatile int caught, code;

static void count(int signal, void *info, void *context)
{
	(void)context;
	caught = signal;
	code = ((int *)info)[2];	/* si_code */
}

/* fixup ends the access that has faulted: rip is the 17th register of the context. */
static void fixup(int signal, void *info, void *context)
{
	count(signal, info, context);
	((u64 *)((char *)context + 40))[16] = (u64)try_failed;
}

static void handle(int signal, void (*handler)(int, void *, void *))
{
	struct action a = { handler, SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_RESTART, signal_return, 0 };

	T("", rt_sigaction, signal, &a, 0, 8);
}

static void memory(void)
{
	char *p, *q;
	long fd;
	u64 here;

	handle(SIGSEGV, fixup);
	handle(SIGBUS, fixup);
	p = (char *)SYS(mmap, 0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	done(__NR_mmap, "mmap", "", (long)p > 0);
	print("zero", try_read(p));
	print("write", try_write(p + PAGE));
	print("read", try_read(p + PAGE));
	T("", mprotect, p, PAGE, PROT_READ);
	print("write to a page that is read", try_write(p));
	print("signal", caught);
	print("code", code);
	T("", munmap, p + PAGE, PAGE);
	print("read of no page", try_read(p + PAGE));
	print("code", code);
	print("read of a null pointer", try_read(0));
	print("read of the kernel's memory", try_read((char *)0xffffffff81000000));
	T("into no page", getrandom, p + PAGE, 16, 0);
	T("", madvise, p + 2 * PAGE, PAGE, MADV_DONTNEED);
	T("hole", madvise, p, 4 * PAGE, MADV_DONTNEED);
	T("", mincore, p + 2 * PAGE, PAGE, buffer);
	T("hole", mincore, p + PAGE, PAGE, buffer);
	q = (char *)SYS(mremap, p + 2 * PAGE, PAGE, 8 * PAGE, MREMAP_MAYMOVE);
	done(__NR_mremap, "mremap", "", (long)q > 0);
	print("at its end", try_write(q + 8 * PAGE - 1));
	T("length", munmap, p + 1, PAGE);
	T("no length", mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	T("descriptor", mmap, 0, PAGE, PROT_READ, MAP_PRIVATE, 99, 0);
	here = SYS(brk, 0);
	done(__NR_brk, "brk", "", SYS(brk, here + 3 * PAGE) == (long)here + 3 * PAGE);
	print("in it", try_write((char *)here + 2 * PAGE));
	SYS(brk, here);
	print("past it", try_read((char *)here + 2 * PAGE));

	fd = T("", memfd_create, "calls", 0);
	T("", ftruncate, fd, PAGE);
	p = (char *)SYS(mmap, 0, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	print("write", try_write(p + 3));
	print("past the file", try_read(p + PAGE));
	print("signal", caught);
	T("", msync, p, PAGE, 4);
	memset(buffer, '.', 8);
	T("", pread64, fd, buffer, 4, 0);
	print("third", buffer[3]);
	T("", munmap, p, 2 * PAGE);
	T("", close, fd);
	T("", mlock, buffer, PAGE);
	T("", munlock, buffer, PAGE);
}

static void signals(void)
{
	static char stack[2 * PAGE];
	struct { void *sp; int flags, pad; u64 size; } alternate = { stack, 0, 0, sizeof(stack) };	/* stack_t */
	struct __kernel_old_itimerval timer = { { 0, 20000 }, { 0, 20000 } };	/* it comes again, should it have come too early */
	struct __kernel_timespec second = { 1, 0 };
	struct action never = { count, SA_RESTORER, signal_return, 0 };
	u64 set = 1UL << (SIGUSR1 - 1), none = 0, pending = 0;
	long pid = D("", getpid), tid = D("", gettid);

	handle(SIGUSR1, count);
	handle(SIGALRM, count);
	T("", sigaltstack, &alternate, 0);
	T("", kill, pid, SIGUSR1);
	print("caught", caught);
	print("code", code);
	T("", tgkill, pid, tid, SIGALRM);
	print("caught", caught);
	T("nobody", kill, 999999, 0);
	T("number", kill, pid, 99);
	T("", rt_sigprocmask, SIG_BLOCK, &set, 0, 8);
	caught = 0;
	T("", tkill, tid, SIGUSR1);
	print("caught", caught);
	T("", rt_sigpending, &pending, 8);
	print("pending", pending == set);
	T("", rt_sigsuspend, &none, 8);
	print("caught", caught);
	T("", rt_sigprocmask, SIG_SETMASK, &none, 0, 8);
	T("", setitimer, 0, &timer, 0);
	T("", pause);
	print("caught", caught);
	T("interrupted", nanosleep, &second, &second);
	timer.it_interval.tv_usec = timer.it_value.tv_usec = 0;
	T("", setitimer, 0, &timer, 0);
	T("", getitimer, 0, &timer);
	T("SIGKILL", rt_sigaction, SIGKILL, &never, 0, 8);
}

static void times(void)
{
	struct __kernel_timespec a, b, ms = { 0, 2000000 }, wrong = { 0, -1 };

	T("", clock_gettime, CLOCK_MONOTONIC, &a);
	T("", nanosleep, &ms, 0);
	T("wrong", nanosleep, &wrong, 0);
	T("", clock_nanosleep, CLOCK_MONOTONIC, 0, &ms, 0);
	T("", clock_gettime, CLOCK_MONOTONIC, &b);
	print("4 ms later", (b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec >= 4000000);
	T("clock", clock_gettime, 99, &a);
	T("", clock_getres, CLOCK_MONOTONIC, &a);
	T("", gettimeofday, buffer, 0);
	D("", time, 0);
	D("", times, buffer);
	T("", sysinfo, buffer);
	T("", getrusage, 0, buffer);
}

static void identity(void)
{
	struct new_utsname *u = (struct new_utsname *)buffer;
	struct { u64 soft, hard; } limit = { 100, 200 };
	u32 capability[2 + 6] = { 0x20080522 };

	T("", uname, u);
	print_text("node", u->nodename);
	print_text("machine", u->machine);
	T("", getuid);
	T("", geteuid);
	T("", getgid);
	T("", getegid);
	T("", getgroups, 0, 0);
	T("", capget, capability, capability + 2);
	T("", getpriority, 0, 0);
	T("", setpriority, 0, 0, 5);
	T("", getpriority, 0, 0);
	T("", setpriority, 0, 0, 0);
	T("", sched_getscheduler, 0);
	T("", sched_yield);
	D("", sched_getaffinity, 0, 128, buffer);
	T("", getcpu, buffer, 0);
	T("", prlimit64, 0, 7 /* RLIMIT_NOFILE */, &limit, 0);
	T("", getrlimit, 7, &limit);
	print("soft", limit.soft);
	T("too many", dup2, 1, 100);
	T("PR_SET_NAME", prctl, PR_SET_NAME, "renamed");
	memset(buffer, 0, 16);
	T("PR_GET_NAME", prctl, PR_GET_NAME, buffer);
	print_text("name", buffer);
	T("ARCH_GET_FS", arch_prctl, 0x1003, buffer);
	T("", personality, 0xffffffff);
	T("", getrandom, buffer, 16, 0);
	D("", set_tid_address, 0);
	D("", getpgrp);
	D("", getpgid, 0);
	D("", getsid, 0);
	T("a leader", setsid);
	say(1000, "1000", "", syscall(1000, 0, 0, 0, 0, 0, 0));
}

static void processes(char *self)
{
	char *args[] = { self, "again", 0 }, *env[] = { 0 };
	int status = 0, p[2];
	struct { int a[32]; } info;
	struct action usual = { 0, SA_RESTORER, signal_return, 0 };
	long pid, fd;
	volatile char *shared, *own = buffer;

	*own = 'a';
	shared = (char *)SYS(mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid = SYS(fork);
	if (pid == 0) {
		*own = 'b';	/* copied on write */
		*shared = 's';
		SYS(exit_group, 3);
	}
	done(__NR_fork, "fork", "", pid);
	print("waited", SYS(wait4, pid, &status, 0, 0) == pid);
	say(__NR_wait4, "wait4", "status", status);
	print("own", *own);
	print("shared", *shared);
	T("no child", wait4, -1, &status, 0, 0);

	pid = vfork_exit(4);
	done(__NR_vfork, "vfork", "", pid);
	T("", waitid, 1 /* P_PID */, pid, &info, 4 /* WEXITED */, 0);
	print("status", info.a[6]);

	pid = SYS(fork);
	if (pid == 0)
		for (;;)
			SYS(pause);
	fd = T("", pidfd_open, pid, 0);
	T("running", wait4, pid, &status, WNOHANG, 0);
	T("", pidfd_send_signal, fd, SIGTERM, 0, 0);
	print("waited", SYS(wait4, pid, &status, 0, 0) == pid);
	print("status", status);
	T("gone", pidfd_send_signal, fd, 0, 0, 0);
	T("", close, fd);

	pid = SYS(fork);
	if (pid == 0) {
		SYS(rt_sigaction, SIGSEGV, &usual, 0, 8);
		SYS(exit_group, try_write(bad));
	}
	print("waited", SYS(wait4, pid, &status, 0, 0) == pid);
	print("status of a fault", status);

	T("missing", execve, "/missing", args, env);
	T("no program", execve, "/proc/self/mounts", args, env);
	T("", pipe2, p, 0);
	pid = SYS(fork);
	if (pid == 0) {
		SYS(dup2, p[1], 1);
		say(__NR_execve, "execve", "", SYS(execve, self, args, env));
		SYS(exit_group, 6);
	}
	T("", close, p[1]);
	memset(buffer, 0, 64);
	T("", read, p[0], buffer, 64);
	print_text("it says", buffer);
	T("at its end", read, p[0], buffer, 64);
	T("", close, p[0]);
	print("waited", SYS(wait4, pid, &status, 0, 0) == pid);
	print("status", status);
	made[__NR_execve] = 1;

	pid = SYS(fork);
	if (pid == 0) {
		struct new_utsname u;

		T("CLONE_NEWUTS", unshare, 0x04000000);
		T("", sethostname, "elsewhere", 9);
		SYS(uname, &u);
		print_text("node", u.nodename);
		T("", setgid, 1);
		T("", setuid, 1);
		T("", getuid);
		T("forbidden", sethostname, "x", 1);
		T("forbidden", kill, 1, SIGKILL);
		T("forbidden", openat, AT_FDCWD, "/proc/1/environ", O_RDONLY);
		T("", setpgid, 0, 0);
		T("", setsid);
		SYS(exit_group, 0);
	}
	print("waited", SYS(wait4, pid, &status, 0, 0) == pid);
	print("status", status);
	made[__NR_unshare] = made[__NR_sethostname] = made[__NR_setuid] = made[__NR_setgid] = made[__NR_setpgid] = 1;
	print("node is ours", (SYS(uname, buffer), same(((struct new_utsname *)buffer)->nodename, "elsewhere", 9)) == 0);
	D("", getppid);
}

static volatile int word, tid, turns;

static void second(void)
{
	for (int i = 0; i < 3; i++) {
		while (word != 1)
			SYS(futex, &word, FUTEX_WAIT_PRIVATE, 0, 0);
		turns++;
		word = 0;
		SYS(futex, &word, FUTEX_WAKE_PRIVATE, 1);
	}
}

static void threads(void)
{
	static char stack[4 * PAGE] __attribute__((aligned(16)));
	struct __kernel_timespec ms = { 0, 1000000 };

	T("not so", futex, &word, FUTEX_WAIT_PRIVATE, 5, 0);
	T("in time", futex, &word, FUTEX_WAIT_PRIVATE, 0, &ms);
	T("nobody", futex, &word, FUTEX_WAKE_PRIVATE, 1);
	T("bad", futex, bad, FUTEX_WAIT_PRIVATE, 0, 0);
	tid = 1;
	done(__NR_clone, "clone", "", thread(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID,
		stack + sizeof(stack), (int *)&tid, second));
	for (int i = 0; i < 3; i++) {
		word = 1;
		SYS(futex, &word, FUTEX_WAKE_PRIVATE, 1);
		while (word != 0)
			SYS(futex, &word, FUTEX_WAIT_PRIVATE, 1, 0);
	}
	while (tid != 0)
		SYS(futex, &tid, FUTEX_WAIT, tid, 0);
	print("turns", turns);
}

static void ipc(void)
{
	struct { long type; char text[16]; } m = { 1, "a message" };
	struct sembuf up = { 0, 1, 0 }, down = { 0, -1, IPC_NOWAIT };
	long id;
	char *p;

	id = SYS(msgget, IPC_PRIVATE, 0600);
	done(__NR_msgget, "msgget", "", id >= 0);
	T("", msgsnd, id, &m, 10, 0);
	memset(m.text, 0, 16);
	T("", msgrcv, id, &m, 16, 0, 0);
	print_text("message", m.text);
	T("nothing", msgrcv, id, &m, 16, 0, IPC_NOWAIT);
	T("", msgctl, id, IPC_RMID, 0);
	T("removed", msgsnd, id, &m, 10, 0);
	id = SYS(semget, IPC_PRIVATE, 1, 0600);
	done(__NR_semget, "semget", "", id >= 0);
	T("up", semop, id, &up, 1);
	T("down", semop, id, &down, 1);
	T("again", semop, id, &down, 1);
	T("", semctl, id, 0, IPC_RMID, 0);
	id = SYS(shmget, IPC_PRIVATE, PAGE, 0600);
	done(__NR_shmget, "shmget", "", id >= 0);
	p = (char *)SYS(shmat, id, 0, 0);
	done(__NR_shmat, "shmat", "", (long)p > 0);
	print("write", try_write(p));
	T("", shmdt, p);
	T("", shmctl, id, IPC_RMID, 0);
}

static void proc(void)
{
	long fd = T("/proc/self/comm", openat, AT_FDCWD, "/proc/self/comm", O_RDONLY);

	memset(buffer, 0, 64);
	T("", read, fd, buffer, 64);
	T("", close, fd);
	buffer[strlen(buffer) - 1] = 0;
	print_text("comm", buffer);
	fd = T("/proc/sys/kernel/ostype", openat, AT_FDCWD, "/proc/sys/kernel/ostype", O_RDONLY);
	T("", read, fd, buffer, 64);
	T("", close, fd);
	fd = T("/dev/zero", openat, AT_FDCWD, "/dev/zero", O_RDONLY);
	memset(buffer, 'x', 64);
	T("", read, fd, buffer, 64);
	print("zero", buffer[63]);
	T("", close, fd);
	fd = T("/dev/full", openat, AT_FDCWD, "/dev/full", O_WRONLY);
	T("full", write, fd, "x", 1);
	T("", close, fd);
}

void start(long *stack)
{
	char **argv = (char **)(stack + 1);
	int different = 0;

	if (stack[0] > 1) {
		SYS(write, 1, "a new program", 13);
		SYS(exit_group, 42);
	}
	files();
	watches();
	pipes();
	sockets();
	memory();
	signals();
	times();
	identity();
	threads();
	ipc();
	proc();
	processes(argv[0]);
	T("", chdir, "/");
	T("", rmdir, "/tmp/calls");
	for (u64 i = 0; i < sizeof(made); i++)
		different += made[i];
	print("different system calls", different);
	SYS(write, 2, "done\n", 5);
	SYS(exit_group, 7);
}
