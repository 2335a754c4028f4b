/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How init and the supervisor start a program. The source that takes this in has argv, envp and cwd of the next one, and
 * PREPARE, by which the new process gets ready.
 */

/* again repeats a system call that a signal has interrupted. */
#define AGAIN(call)	({ long r_; do r_ = (call); while (r_ == -EINTR); r_; })

/*
 * start_program runs the program in a new process with these standard
 * files. It returns the process, or the errno of what failed, execve included:
 * the status pipe closes by itself when execve succeeds.
 */
static long start_program(int in, int to, int err)
{
	int status[2];
	long pid, r, got;

	r = SYS(pipe2, status, O_CLOEXEC);
	if (r < 0)
		return r;
	pid = SYS(fork);
	if (pid == 0) {
		u64 none = 0;

		SYS(rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof(none));
		SYS(setsid);
		/* None of the three is below 3: init's own files are there. */
		SYS(dup2, in, 0);
		SYS(dup2, to, 1);
		SYS(dup2, err, 2);
		PREPARE();
		r = SYS(chdir, *cwd ? cwd : "/");
		if (r == 0)
			r = SYS(execve, argv[0], argv, envp);
		SYS(write, status[1], &r, sizeof(r));
		for (;;)
			SYS(exit_group, 127);
	}
	SYS(close, status[1]);
	if (pid > 0) {
		got = AGAIN(SYS(read, status[0], &r, sizeof(r)));
		if (got == sizeof(r)) {
			AGAIN(SYS(wait4, pid, 0));
			pid = r;
		}
	}
	SYS(close, status[0]);
	return pid;
}
