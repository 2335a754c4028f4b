// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first process of a kernel that kprobelab boots. It makes the machine
 * usual (file systems, a network interface, a host name), and then does what
 * the host puts into the mailbox, one command after the other (mailbox.h).
 */
#include "mailbox.h"
#include "sys.h"

#define PAGE	4096

struct mailbox {
	u64 magic;
	u32 version, command;
	u64 call;
	u32 argc, envc, input, input_size;
	char pad[MAILBOX_DATA - 0x28];
	char data[];	/* up to MAILBOX_SIZE, by the link script */
};

extern char host_call_site[];
long host_call(long number, long a, long b, long c);

static volatile struct mailbox mailbox __attribute__((section(".mailbox"), aligned(PAGE))) = {
	.magic = MAILBOX_MAGIC, .version = MAILBOX_VERSION, .call = (u64)host_call_site,
};

/* A command, as the host wrote it: copied before anything else uses it. */
static char *vector[MAILBOX_MAX_ARGS + 2], **argv, **envp, *cwd;
static char data[MAILBOX_SIZE - MAILBOX_DATA + 1], *input;
static u32 input_size;

/* Each piece of output lies in one page. */
static char piece[PAGE] __attribute__((aligned(PAGE)));

static void out(int fd, u64 size)
{
	host_call(MAILBOX_CALL | MAILBOX_OUT, fd, (long)piece, size);
}

static void report(int status, long err)
{
	host_call(MAILBOX_CALL | MAILBOX_EXIT, status, -err, 0);
}

/* take splits a command's strings into argv, envp and cwd; 0 or -EINVAL. */
static long take(void)
{
	u32 argc = mailbox.argc, envc = mailbox.envc, at = 0;

	input = data;
	input_size = mailbox.input_size;
	if (argc < 1 || argc > MAILBOX_MAX_ARGS || envc > MAILBOX_MAX_ARGS - argc)
		return -EINVAL;
	if (mailbox.input > sizeof(data) - 1 || input_size > sizeof(data) - 1 - mailbox.input)
		return -EINVAL;
	memcpy(data, (char *)mailbox.data, mailbox.input + input_size);
	input = data + mailbox.input;
	argv = vector;
	envp = vector + argc + 1;
	argv[argc] = envp[envc] = 0;
	for (u32 i = 0; i <= argc + envc; i++) {
		char *s = data + at;

		while (at < mailbox.input && data[at])
			at++;
		if (at >= mailbox.input)
			return -EINVAL;
		at++;
		if (i < argc)
			argv[i] = s;
		else if (i < argc + envc)
			envp[i - argc] = s;
		else
			cwd = s;
	}
	return 0;
}

#define PREPARE()
#include "spawn.h"

/* pass hands over what is in a pipe now; 0 when nothing more can come. */
static int pass(int pipe, int fd)
{
	for (;;) {
		long n = AGAIN(SYS(read, pipe, piece, PAGE));

		if (n <= 0)
			return n == -EAGAIN;
		out(fd, n);
	}
}

/* reap waits for all processes that have ended, and says whether one is among them. */
static int reap(long pid, int *status)
{
	int ended = 0, s;
	long p;

	while ((p = SYS(wait4, -1, &s, WNOHANG)) > 0 || p == -EINTR)
		if (p == pid) {
			*status = s;
			ended = 1;
		}
	return ended;
}

/*
 * serve feeds a program and passes on what it writes, until it has ended. It drops
 * what the program's children write later.
 */
static int serve(long pid, int in, int to, int err, int ended)
{
	char signals[128];	/* struct signalfd_siginfo */
	struct pollfd p[4] = {
		{ to, POLLIN, 0 }, { err, POLLIN, 0 }, { ended, POLLIN, 0 }, { in, POLLOUT, 0 },
	};
	int status = 0, done = 0;

	while (!done) {
		if (p[3].fd >= 0 && input_size == 0) {
			SYS(close, p[3].fd);
			p[3].fd = -1;
		}
		if (AGAIN(SYS(poll, p, 4, -1)) < 0)
			break;
		if (p[3].revents) {
			long n = AGAIN(SYS(write, p[3].fd, input, input_size));

			if (n > 0) {
				input += n;
				input_size -= n;
			} else if (n != -EAGAIN) {
				input_size = 0;
			}
		}
		if (p[2].revents) {
			while (AGAIN(SYS(read, ended, signals, sizeof(signals))) > 0)
				;
			done = reap(pid, &status);
		}
		if ((p[0].revents || done) && !pass(to, 1))
			p[0].fd = -1;
		if ((p[1].revents || done) && !pass(err, 2))
			p[1].fd = -1;
	}
	if (p[3].fd >= 0)
		SYS(close, p[3].fd);
	return status;
}

static void nonblocking(int fd)
{
	SYS(fcntl, fd, F_SETFL, O_NONBLOCK);
}

static void exec(void)
{
	int in[2] = { -1, -1 }, to[2] = { -1, -1 }, err[2] = { -1, -1 }, ended = -1, status = 0;
	struct { int priority; } first = { 1 };
	u64 child = 1UL << (SIGCHLD - 1);
	long r;

	/*
	 * Init runs before others: each piece of output is handed over before the
	 * program goes on, and so the order of stdout and stderr is kept. Its
	 * children are not so.
	 */
	SYS(sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
	SYS(rt_sigprocmask, SIG_BLOCK, &child, 0, sizeof(child));
	if ((r = SYS(pipe2, in, O_CLOEXEC)) < 0 || (r = SYS(pipe2, to, O_CLOEXEC)) < 0 || (r = SYS(pipe2, err, O_CLOEXEC)) < 0 ||
	    (r = ended = SYS(signalfd4, -1, &child, sizeof(child), O_CLOEXEC | O_NONBLOCK)) < 0)
		goto out;
	nonblocking(in[1]);
	nonblocking(to[0]);
	nonblocking(err[0]);
	r = start_program(in[0], to[1], err[1]);
	SYS(close, in[0]);
	SYS(close, to[1]);
	SYS(close, err[1]);
	in[0] = to[1] = err[1] = -1;
	if (r > 0) {
		status = serve(r, in[1], to[0], err[0], ended);
		in[1] = -1;
		r = 0;
	}
out:
	for (int i = 0; i < 2; i++) {
		if (in[i] >= 0)
			SYS(close, in[i]);
		if (to[i] >= 0)
			SYS(close, to[i]);
		if (err[i] >= 0)
			SYS(close, err[i]);
	}
	if (ended >= 0)
		SYS(close, ended);
	report(status, r);
}

/* spawn gives the program a moment to come to where it waits. */
static void spawn(void)
{
	struct __kernel_timespec moment = { 0, 200000000 };
	long null = SYS(open, "/dev/null", O_RDONLY | O_CLOEXEC), r;

	r = start_program(null, 1, 2);
	SYS(close, null);
	if (r > 0) {
		SYS(nanosleep, &moment, 0);
		r = 0;
	}
	report(0, r);
}

static void insmod(void)
{
	long fd = SYS(open, argv[0], O_RDONLY | O_CLOEXEC), r = fd;

	if (fd >= 0) {
		r = SYS(finit_module, fd, argv[1] ? argv[1] : "");
		SYS(close, fd);
	}
	report(0, r);
}

static void write_file(void)
{
	long fd = SYS(open, argv[0], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644), r = fd;

	if (fd >= 0) {
		r = AGAIN(SYS(write, fd, input, input_size));
		SYS(close, fd);
		if (r >= 0)
			r = r == input_size ? 0 : -ENOSPC;
	}
	report(0, r);
}

static void read_file(void)
{
	long fd = SYS(open, argv[0], O_RDONLY | O_CLOEXEC), r = fd;

	if (fd >= 0) {
		while ((r = AGAIN(SYS(read, fd, piece, PAGE))) > 0)
			out(1, r);
		SYS(close, fd);
	}
	report(0, r);
}

static void obey(u32 command)
{
	static void (*const commands[])(void) = {
		[MAILBOX_EXEC] = exec, [MAILBOX_SPAWN] = spawn, [MAILBOX_INSMOD] = insmod,
		[MAILBOX_WRITE] = write_file, [MAILBOX_READ] = read_file,
	};
	int status;
	long r;

	if (command >= sizeof(commands) / sizeof(*commands))
		r = -ENOSYS;
	else
		r = take();
	if (r)
		report(0, r);
	else
		commands[command]();
	reap(0, &status);
}

static void mount(const char *type, const char *at)
{
	SYS(mkdir, at, 0755);
	SYS(mount, type, at, type, 0, 0);
}

/* loopback brings the interface up; its address comes by itself. */
static void loopback(void)
{
	struct { char name[16]; short flags; char pad[22]; } r = { .name = "lo", .flags = 0x1 | 0x40 /* IFF_UP | IFF_RUNNING */ };	/* struct ifreq */
	long fd = SYS(socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | O_CLOEXEC, 0);

	if (fd < 0)
		return;
	SYS(ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &r);
	SYS(close, fd);
}

static void usual(void)
{
	static const char name[] = "kprobelab", hello[] = "kprobelab: init is ready\n";
	long fd;

	mount("proc", "/proc");
	mount("sysfs", "/sys");
	mount("devtmpfs", "/dev");
	mount("tmpfs", "/tmp");
	mount("debugfs", "/sys/kernel/debug");
	mount("tracefs", "/sys/kernel/tracing");
	/* The kernel may have found no console while the initramfs had none. */
	fd = SYS(open, "/dev/console", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (fd >= 0 && fd != i)
			SYS(dup2, fd, i);
	if (fd > 2)
		SYS(close, fd);
	loopback();
	SYS(sethostname, name, sizeof(name) - 1);
	SYS(write, 1, hello, sizeof(hello) - 1);
}

/*
 * entropy makes the kernel's random numbers ready. Without a device that has some, the
 * first program that asks waits while the kernel makes them, a second of its time. What
 * is given is no secret: a boot is the same each time.
 */
static void entropy(void)
{
	static const struct {
		struct rand_pool_info info;
		u32 words[16];
	} pool = {
		.info = { .entropy_count = 8 * sizeof(pool.words), .buf_size = sizeof(pool.words) },
		.words = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
	};
	long fd = SYS(open, "/dev/random", O_RDWR | O_CLOEXEC);

	SYS(ioctl, fd, RNDADDENTROPY, &pool);
	SYS(close, fd);
}

/* alone reports whether no other task runs or waits for a processor: the fourth word of loadavg is 1/TASKS. */
static int alone(void)
{
	char text[64];
	long fd = SYS(open, "/proc/loadavg", O_RDONLY | O_CLOEXEC), n = SYS(read, fd, text, sizeof(text));
	int words = 0;

	SYS(close, fd);
	for (long at = 0; at + 2 < n; at++)
		if (text[at] == ' ' && ++words == 3)
			return text[at + 1] == '1' && text[at + 2] == '/';
	return 0;
}

/*
 * settle waits for what boot has left to do in the background (the clock is
 * calibrated for a second more, for one; later kernels test their ciphers for
 * seconds): a dump shows a machine at rest. Ten looks in a second find nothing that
 * runs, or two minutes have passed.
 */
static void settle(void)
{
	struct __kernel_timespec rest = { 3, 0 }, look = { 0, 100000000 };
	int quiet = 0;

	SYS(nanosleep, &rest, 0);
	for (int looks = 0; looks < 1200 && quiet < 10; looks++) {
		SYS(nanosleep, &look, 0);
		quiet = alone() ? quiet + 1 : 0;
	}
}

/* present makes the pages of the mailbox init's own: a host can write there. */
static void present(void)
{
	volatile char *p = (volatile char *)&mailbox;

	for (u64 at = 0; at < MAILBOX_SIZE; at += PAGE)
		p[at] = p[at];
}

void start(long *stack)
{
	(void)stack;
	usual();
	entropy();
	settle();
	present();
	host_call(MAILBOX_CALL | MAILBOX_READY, MAILBOX_VERSION, 0, 0);
	for (;;) {
		u32 command;

		SYS(getppid, MAILBOX_MAGIC);
		command = mailbox.command;
		if (command != MAILBOX_NONE) {
			mailbox.command = MAILBOX_NONE;
			obey(command);
		}
	}
}
