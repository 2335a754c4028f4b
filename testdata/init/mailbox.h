/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a host and the init of a booted kernel speak (internal/mailbox has the
 * same in Go, and a test compares them). The host is QEMU's debugger, or a
 * machine that runs a dump.
 *
 * The stop point. Init asks for work by getppid(MAILBOX_MAGIC). A host that
 * stops at the entry of __x64_sys_getppid finds the magic in the pt_regs that
 * rdi points to (di), and so knows init's call from any other. The current
 * task is init, in process context, with interrupts on: here a dump is taken.
 *
 * The mailbox. At MAILBOX_ADDR of init's memory lies struct mailbox, in pages
 * that are present and writable. At the stop point a host may put a command
 * there; init does it when getppid has returned, and is at the stop point
 * again afterwards. Without a command it calls getppid again at once.
 *
 * Calls. What a command says is handed over by a system call whose number no
 * kernel has, made by the syscall instruction at the address in the mailbox
 * (call): rax is MAILBOX_CALL | op, the arguments are in rdi, rsi and rdx. The
 * host answers 0 in rax, and the kernel never sees the call. A kernel that
 * does see it answers -ENOSYS, which init takes for an answer: what was said
 * is lost.
 *
 * All numbers are little endian. Addresses and sizes are multiples of a page.
 */
#define MAILBOX_ADDR	0x6b700000	/* of struct mailbox */
#define MAILBOX_SIZE	0x40000		/* with its data */
#define MAILBOX_DATA	0x1000		/* offset of data */
#define MAILBOX_MAGIC	0x786f626c69616d6b	/* "kmailbox" */
#define MAILBOX_VERSION	1

/* struct mailbox: offset of each field, and what it is. */
#define MAILBOX_AT_MAGIC	0x00	/* u64 MAILBOX_MAGIC */
#define MAILBOX_AT_VERSION	0x08	/* u32 MAILBOX_VERSION */
#define MAILBOX_AT_COMMAND	0x0c	/* u32 one of MAILBOX_NONE ... ; init clears it when it begins */
#define MAILBOX_AT_CALL		0x10	/* u64 address of the syscall instruction of calls */
#define MAILBOX_AT_ARGC		0x18	/* u32 how many arguments: strings of data, the first ones */
#define MAILBOX_AT_ENVC		0x1c	/* u32 how many strings of environment, after them; after these one string, the working directory */
#define MAILBOX_AT_INPUT	0x20	/* u32 offset in data of the input's bytes: after the strings, each of which ends in NUL */
#define MAILBOX_AT_INPUT_SIZE	0x24	/* u32 how many bytes */

/* Commands. */
#define MAILBOX_NONE	0
#define MAILBOX_EXEC	1	/* run a program: its arguments, environment, directory, and its standard input */
#define MAILBOX_SPAWN	2	/* start one, with the console as its output, and leave it running */
#define MAILBOX_INSMOD	3	/* load a module: its file, its parameters */
#define MAILBOX_WRITE	4	/* write the input to a file, with one write(2), at its end */
#define MAILBOX_READ	5	/* OUT what a file has */
#define MAILBOX_MAX_ARGS	2048	/* arguments and environment, together */

/* Calls: rax is MAILBOX_CALL | op. */
#define MAILBOX_CALL	0x6b700000
#define MAILBOX_READY	0	/* init begins: rdi is MAILBOX_VERSION */
#define MAILBOX_OUT	1	/* output: rdi is 1 or 2 (of stdout, stderr), rsi its address, rdx its size, at most a page and inside one */
#define MAILBOX_EXIT	2	/* the command's end: rdi is a program's status as wait4(2) has it, rsi the errno of what could not be done, 0 if it was */
