// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making tasks: kernel_clone and its older names do_fork and _do_fork, each
 * with the arguments it had, and the functions below them. The new task only
 * gets a number and a name; it never runs.
 */

#define NR_TASKS 64
#define CLONE_THREAD 0x10000
#define SIGCHLD 17

struct kernel_clone_args {
	u64 flags;
	int *pidfd;
	int *child_tid;
	int *parent_tid;
	int exit_signal;
	u64 stack;
	u64 stack_size;
	u64 tls;
	pid_t *set_tid;
	size_t set_tid_size;
};

struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

static struct task_struct tasks[NR_TASKS];
static u32 last_pid = 100;

noinline pid_t alloc_pid(void)
{
	return __sync_add_and_fetch(&last_pid, 1);
}

static noinline void dup_task_struct(struct task_struct *tsk, struct task_struct *orig)
{
	*tsk = *orig;
	barrier();
}

noinline struct task_struct *copy_process(void *pid, int trace, int node, struct kernel_clone_args *args)
{
	pid_t nr = alloc_pid();
	struct task_struct *p = &tasks[nr % NR_TASKS];

	dup_task_struct(p, current);
	p->pid = nr;
	p->tgid = args->flags & CLONE_THREAD ? current->tgid : nr;
	p->clone_flags = args->flags;
	p->state = 0x800;
	return p;
}

noinline void wake_up_new_task(struct task_struct *p)
{
	WRITE_ONCE(p->state, 0);
}

/* Returns the new task's number, or an error below 0. */
noinline pid_t kernel_clone(struct kernel_clone_args *args)
{
	struct task_struct *p;
	pid_t nr;

	if (!args)
		return -EINVAL;
	p = copy_process(NULL, 0, -1, args);
	nr = p->pid;
	if (args->parent_tid)
		*args->parent_tid = nr;
	wake_up_new_task(p);
	return nr;
}

/* The name and arguments of 2.6.23 to 5.2. */
noinline long _do_fork(u64 clone_flags, u64 stack_start, u64 stack_size,
		       int *parent_tidptr, int *child_tidptr, u64 tls)
{
	struct kernel_clone_args args = {
		.flags = clone_flags,
		.stack = stack_start,
		.stack_size = stack_size,
		.parent_tid = parent_tidptr,
		.child_tid = child_tidptr,
		.tls = tls,
	};
	struct task_struct *p = copy_process(NULL, 0, -1, &args);
	pid_t nr = p->pid;

	if (parent_tidptr)
		*parent_tidptr = nr;
	wake_up_new_task(p);
	return nr;
}

/* The name and arguments of 2.6.18. */
noinline long do_fork(u64 clone_flags, u64 stack_start, struct pt_regs *regs,
		      u64 stack_size, int *parent_tidptr, int *child_tidptr)
{
	struct kernel_clone_args args = {
		.flags = clone_flags,
		.stack = stack_start,
		.stack_size = stack_size,
		.parent_tid = parent_tidptr,
		.child_tid = child_tidptr,
	};
	struct task_struct *p = copy_process(NULL, 0, -1, &args);
	pid_t nr = p->pid;

	if (parent_tidptr)
		*parent_tidptr = nr;
	wake_up_new_task(p);
	return nr;
}

noinline long sys_fork(void)
{
	struct kernel_clone_args args = { .exit_signal = SIGCHLD };
	pid_t nr = kernel_clone(&args);

	barrier();
	return nr;
}

noinline long sys_clone(u64 clone_flags, u64 newsp, int *parent_tidptr, int *child_tidptr, u64 tls)
{
	struct kernel_clone_args args = {
		.flags = clone_flags & ~0xfful,
		.exit_signal = clone_flags & 0xff,
		.stack = newsp,
		.parent_tid = parent_tidptr,
		.child_tid = child_tidptr,
		.tls = tls,
	};
	pid_t nr = kernel_clone(&args);

	barrier();
	return nr;
}

/* n forks by each of the names; returns the last number. */
noinline long kernel_clone_n(u64 n)
{
	long nr = 0;

	while (n--)
		nr = sys_fork();
	return nr;
}

noinline long _do_fork_n(u64 n)
{
	long nr = 0;

	while (n--)
		nr = _do_fork(SIGCHLD, 0, 0, NULL, NULL, 0);
	return nr;
}

noinline long do_fork_n(u64 n)
{
	long nr = 0;

	while (n--)
		nr = do_fork(SIGCHLD, 0, NULL, 0, NULL, NULL);
	return nr;
}
