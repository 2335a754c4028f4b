/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a host and the supervisor of programs speak (internal/supervisor has the same in Go, and a test compares them).
 * The supervisor is a program that init runs. It starts the programs that the host says, hands over their output and
 * how they have ended, and does what the host asks for in between. Its calls are made as init's are (mailbox.h).
 *
 * BEGIN comes first: the task that makes it, and the address it is made at, are the supervisor's from then on. ASK asks
 * what is to be done; the host answers with an action in rax:
 *
 *	bits 0 to 7	one of SUPERVISE_WAIT ...
 *	bits 8 to 15	the number of a program
 *	bits 32 to 63	a number
 */
#define SUPERVISE_VERSION	2
#define SUPERVISE_PROGRAMS	8	/* at once, by their numbers; the first has the input */
#define SUPERVISE_JOB_SIZE	0x40000	/* of the buffer for SUPERVISE_START */
#define SUPERVISE_INPUT_SIZE	0x10000	/* of the buffer for SUPERVISE_INPUT */
#define SUPERVISE_MAX_ARGS	4096	/* arguments and environment, together */

/* Calls: rax is MAILBOX_CALL | op. */
#define SUPERVISE_BEGIN		0x10	/* rdi is SUPERVISE_VERSION */
#define SUPERVISE_ASK		0x11	/* rdi is the job buffer, rsi the input buffer, rdx 1 if that is free, else 0 */
#define SUPERVISE_OUT		0x12	/* rdi is the program's number and, from bit 8 on, 1 or 2 of stdout and stderr; rsi an address, rdx a size: at most a page, and inside one */
#define SUPERVISE_ENDED		0x13	/* rdi is the program's number, rsi its status as wait4(2) has it, rdx the errno of why it did not start, or 0 */

/* Actions. */
#define SUPERVISE_WAIT		0	/* wait for what comes, at most the number of milliseconds; 0xffffffff: without end */
#define SUPERVISE_START		1	/* start the program of the job buffer; the number is its size in bytes */
#define SUPERVISE_SIGNAL	2	/* send the signal of the number to the program and its process group */
#define SUPERVISE_INPUT		3	/* write the input buffer to the first program; the number is its size */
#define SUPERVISE_CLOSE		4	/* the first program's input has ended */
#define SUPERVISE_END		5	/* end; if the number is 1, every process but init is killed before */

/* A job: offset of each field, and what it is. */
#define SUPERVISE_AT_ARGC	0x00	/* u32 how many arguments: strings of the job, the first ones */
#define SUPERVISE_AT_ENVC	0x04	/* u32 how many strings of environment, after them; after these one string, the working directory */
#define SUPERVISE_AT_RIGHTS	0x08	/* u32 which of the following count: bits of SUPERVISE_HAS_ */
#define SUPERVISE_AT_USER	0x0c	/* u32 the user */
#define SUPERVISE_AT_GROUP	0x10	/* u32 the group; there are no others */
#define SUPERVISE_AT_LIMITED	0x14	/* u32 a bit for each of the limits that count */
#define SUPERVISE_AT_CAPS	0x18	/* u64 a bit for each capability: the program has these and gets no others */
#define SUPERVISE_AT_LIMITS	0x40	/* SUPERVISE_LIMITS times u64 the soft and u64 the hard limit of a resource, by its number */
#define SUPERVISE_AT_STRINGS	0x140	/* each ends in NUL */
#define SUPERVISE_LIMITS	16
#define SUPERVISE_HAS_USER	1	/* user and group */
#define SUPERVISE_HAS_CAPS	2	/* capabilities */
