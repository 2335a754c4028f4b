// SPDX-License-Identifier: GPL-2.0-only
/*
 * Starts programs on a booted kernel and keeps the host informed of them (supervise.h). With arguments it loads or
 * unloads a module instead.
 */
#include "mailbox.h"
#include "supervise.h"
#include "sys.h"
#include <linux/capability.h>
#include <linux/mman.h>
#include <linux/prctl.h>

#define PAGE	4096
#define FOREVER	0xffffffff

long host_call(long number, long a, long b, long c);

/* What a program may: user, capabilities, limits. */
struct rights {
	u32 has, user, group, limited;
	u64 caps;
	char pad[SUPERVISE_AT_LIMITS - SUPERVISE_AT_CAPS - 8];
	struct { u64 soft, hard; } limits[SUPERVISE_LIMITS];
};

struct job {
	u32 argc, envc;
	struct rights rights;
	char strings[SUPERVISE_JOB_SIZE - SUPERVISE_AT_STRINGS];
};

/*
 * What the host writes to. The pages stay this process's own: a fork would make them shared, and no processor, and so no
 * host, could write to them.
 */
static struct job job __attribute__((aligned(PAGE)));
static char input[SUPERVISE_INPUT_SIZE] __attribute__((aligned(PAGE)));

/* Each piece of output lies in one page. */
static char piece[PAGE] __attribute__((aligned(PAGE)));

/* A program: its process, 0 without one, and our ends of its pipes, -1 when closed. */
static struct program {
	long pid;
	int in, out, err;
} programs[SUPERVISE_PROGRAMS];

/* What is left to write to the first program, and whether nothing comes after it. */
static char *input_at;
static u64 input_left;
static int input_ends;

/* The strings of the next program. */
static char data[SUPERVISE_JOB_SIZE];
static char *vector[SUPERVISE_MAX_ARGS + 2], **argv, **envp, *cwd;

/* Its rights. */
static struct rights rights;

static long set_caps(u64 caps)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2];

	for (int i = 0; i < 2; i++) {
		u32 half = caps >> 32 * i;

		sets[i] = (struct __user_cap_data_struct){ half, half, half };
	}
	return SYS(capset, &header, sets);
}

/*
 * take_rights gives this process its limits, user and capabilities. A user but root keeps capabilities over execve as
 * ambient ones; root's are what the bounding set leaves.
 */
static long take_rights(void)
{
	int caps = rights.has & SUPERVISE_HAS_CAPS, user = rights.has & SUPERVISE_HAS_USER;
	long r = 0;

	for (u64 i = 0; i < SUPERVISE_LIMITS; i++)
		if (rights.limited >> i & 1 && (r = SYS(prlimit64, 0, i, &rights.limits[i], 0)) < 0)
			return r;
	for (u64 c = 0; caps && c < 64; c++)
		if (!(rights.caps >> c & 1) && SYS(prctl, PR_CAPBSET_DROP, c) < 0)
			break;	/* past the kernel's last one */
	if (user) {
		/* Else nobody but root could open /dev/stdout. */
		for (int fd = 0; fd < 3; fd++)
			SYS(fchown, fd, rights.user, rights.group);
		if (caps)
			r = SYS(prctl, PR_SET_KEEPCAPS, 1);
		if (r == 0)
			r = SYS(setgroups, 0, 0);
		if (r == 0)
			r = SYS(setresgid, rights.group, rights.group, rights.group);
		if (r == 0)
			r = SYS(setresuid, rights.user, rights.user, rights.user);
	}
	if (r == 0 && caps)
		r = set_caps(rights.caps);
	if (r == 0 && caps && user && rights.user)
		for (u64 c = 0; r == 0 && c < 64; c++)
			if (rights.caps >> c & 1)
				r = SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c);
	return r;
}

/* prepare takes the rights; without them the program does not begin. */
static void prepare(int status)
{
	long r = take_rights();

	if (r == 0)
		return;
	SYS(write, status, &r, sizeof(r));
	for (;;)
		SYS(exit_group, 127);
}

#define PREPARE()	prepare(status[1])
#include "spawn.h"

static void close_end(int *fd)
{
	if (*fd >= 0)
		SYS(close, *fd);
	*fd = -1;
}

/* take splits a job's strings into argv, envp and cwd; 0 or -EINVAL. */
static long take(u64 size)
{
	u32 argc = job.argc, envc = job.envc;
	u64 at = 0;

	if (size < SUPERVISE_AT_STRINGS || size > SUPERVISE_JOB_SIZE)
		return -EINVAL;
	size -= SUPERVISE_AT_STRINGS;
	if (argc < 1 || argc > SUPERVISE_MAX_ARGS || envc > SUPERVISE_MAX_ARGS - argc)
		return -EINVAL;
	memcpy(data, job.strings, size);
	rights = job.rights;
	argv = vector;
	envp = vector + argc + 1;
	argv[argc] = envp[envc] = 0;
	for (u32 i = 0; i <= argc + envc; i++) {
		char *s = data + at;

		while (at < size && data[at])
			at++;
		if (at++ >= size)
			return -EINVAL;
		if (i < argc)
			argv[i] = s;
		else if (i < argc + envc)
			envp[i - argc] = s;
		else
			cwd = s;
	}
	return 0;
}

static void ended(u64 n, int status, long err)
{
	host_call(MAILBOX_CALL | SUPERVISE_ENDED, n, status, -err);
}

static long pipes(int in[2], int to[2], int err[2])
{
	long r;

	if ((r = SYS(pipe2, in, O_CLOEXEC)) < 0 || (r = SYS(pipe2, to, O_CLOEXEC)) < 0 || (r = SYS(pipe2, err, O_CLOEXEC)) < 0)
		return r;
	SYS(fcntl, in[1], F_SETFL, O_NONBLOCK);
	SYS(fcntl, to[0], F_SETFL, O_NONBLOCK);
	SYS(fcntl, err[0], F_SETFL, O_NONBLOCK);
	return 0;
}

static void begin(u64 n, u64 size)
{
	int in[2] = { -1, -1 }, to[2] = { -1, -1 }, err[2] = { -1, -1 };
	struct program *p = &programs[n];
	long r = take(size);

	close_end(&p->out);
	close_end(&p->err);
	if (r == 0)
		r = pipes(in, to, err);
	if (r == 0)
		r = start_program(in[0], to[1], err[1]);
	close_end(&in[0]);
	close_end(&to[1]);
	close_end(&err[1]);
	if (n || r <= 0)
		close_end(&in[1]);
	if (r <= 0) {
		close_end(&to[0]);
		close_end(&err[0]);
		ended(n, 0, r);
		return;
	}
	*p = (struct program){ r, in[1], to[0], err[0] };
}

/* feed writes what the first program takes of its input. */
static void feed(void)
{
	struct program *p = &programs[0];

	if (input_left) {
		long n = p->in < 0 ? -EPIPE : AGAIN(SYS(write, p->in, input_at, input_left));

		if (n > 0) {
			input_at += n;
			input_left -= n;
		} else if (n != -EAGAIN) {
			input_left = 0;
			close_end(&p->in);
		}
	}
	if (!input_left && input_ends)
		close_end(&p->in);
}

/* pass hands over what is in a pipe now. */
static void pass(u64 n, int *pipe, int fd)
{
	while (*pipe >= 0) {
		long got = AGAIN(SYS(read, *pipe, piece, PAGE));

		if (got == -EAGAIN)
			return;
		if (got <= 0)
			close_end(pipe);
		else
			host_call(MAILBOX_CALL | SUPERVISE_OUT, n | fd << 8, (long)piece, got);
	}
}

static void pass_all(void)
{
	for (u64 n = 0; n < SUPERVISE_PROGRAMS; n++) {
		pass(n, &programs[n].out, 1);
		pass(n, &programs[n].err, 2);
	}
}

/* reap waits for all processes that have ended. */
static void reap(int ended_fd)
{
	char signals[128];	/* struct signalfd_siginfo */
	int status;
	long pid;

	while (AGAIN(SYS(read, ended_fd, signals, sizeof(signals))) > 0)
		;
	while ((pid = SYS(wait4, -1, &status, WNOHANG)) > 0 || pid == -EINTR)
		for (u64 n = 0; n < SUPERVISE_PROGRAMS; n++)
			if (pid > 0 && programs[n].pid == pid) {
				programs[n].pid = 0;
				pass_all();
				ended(n, status, 0);
			}
}

/* obey does what the host asks for, and returns how long to wait then. */
static int obey(void)
{
	for (;;) {
		u64 answer = host_call(MAILBOX_CALL | SUPERVISE_ASK, (long)&job, (long)input, !input_left);
		u64 n = answer >> 8 & 0xff, number = answer >> 32;

		if (n >= SUPERVISE_PROGRAMS)
			n = 0;
		switch (answer & 0xff) {
		case SUPERVISE_START:
			begin(n, number);
			break;
		case SUPERVISE_SIGNAL:
			if (programs[n].pid)
				SYS(kill, -programs[n].pid, number);
			break;
		case SUPERVISE_INPUT:
			input_at = input;
			input_left = number <= sizeof(input) ? number : 0;
			feed();
			break;
		case SUPERVISE_CLOSE:
			input_ends = 1;
			feed();
			break;
		case SUPERVISE_END:
			if (number)
				SYS(kill, -1, SIGKILL);
			for (;;)
				SYS(exit_group, 0);
		default:
			return number == FOREVER ? -1 : (int)number;
		}
	}
}

/* serve reads and writes only where poll has found something: programs that trace the kernel see each call. */
static void serve(int ended_fd)
{
	enum { ENDED = 2 * SUPERVISE_PROGRAMS, INPUT, ALL };
	struct pollfd p[ALL];

	for (;;) {
		int wait = obey();

		for (u64 n = 0; n < SUPERVISE_PROGRAMS; n++) {
			p[2 * n] = (struct pollfd){ programs[n].out, POLLIN, 0 };
			p[2 * n + 1] = (struct pollfd){ programs[n].err, POLLIN, 0 };
		}
		p[ENDED] = (struct pollfd){ ended_fd, POLLIN, 0 };
		p[INPUT] = (struct pollfd){ input_left ? programs[0].in : -1, POLLOUT, 0 };
		if (AGAIN(SYS(poll, p, ALL, wait)) <= 0)
			continue;
		if (p[INPUT].revents)
			feed();
		for (u64 n = 0; n < SUPERVISE_PROGRAMS; n++) {
			if (p[2 * n].revents)
				pass(n, &programs[n].out, 1);
			if (p[2 * n + 1].revents)
				pass(n, &programs[n].err, 2);
		}
		if (p[ENDED].revents)
			reap(ended_fd);
	}
}

/* own makes pages present, and this process's alone. */
static void own(char *at, u64 size)
{
	SYS(madvise, at, size, MADV_DONTFORK);
	for (volatile char *p = at; p < at + size; p += PAGE)
		*p = 0;
}

/*
 * module loads or unloads a module, as a process of its own: load FILE PARAMETERS, unload NAME. The exit code is the errno.
 */
static void module(char **args)
{
	long r;

	if (args[1][0] == 'l') {
		int fd = SYS(open, args[2], O_RDONLY | O_CLOEXEC);

		r = fd < 0 ? fd : SYS(finit_module, fd, args[3], 0);
	} else {
		r = SYS(delete_module, args[2], O_NONBLOCK);
	}
	for (;;)
		SYS(exit_group, -r);
}

void start(long *stack)
{
	struct { int priority; } first = { 1 };
	u64 child = 1UL << (SIGCHLD - 1), blocked = child | 1UL << (SIGPIPE - 1);
	int fd;

	if (stack[0] > 2)
		module((char **)(stack + 1));
	SYS(prctl, PR_SET_NAME, "kprobelab");
	/* Output is handed over before the program that wrote it goes on, as init does it. */
	SYS(sched_setscheduler, 0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
	SYS(rt_sigprocmask, SIG_BLOCK, &blocked, 0, sizeof(blocked));
	for (u64 n = 0; n < SUPERVISE_PROGRAMS; n++)
		programs[n] = (struct program){ 0, -1, -1, -1 };
	own((char *)&job, sizeof(job));
	own(input, sizeof(input));
	fd = SYS(signalfd4, -1, &child, sizeof(child), O_CLOEXEC | O_NONBLOCK);
	host_call(MAILBOX_CALL | SUPERVISE_BEGIN, SUPERVISE_VERSION, 0, 0);
	serve(fd);
}
