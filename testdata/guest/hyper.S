/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stubs that reach the host. Each is one `out` whose port names the call;
 * nothing may be probed here, as in a kernel's own lowest layer.
 *
 *	E1 yield	the task lets another one run
 *	E2 sleep	rdi: virtual nanoseconds
 *	E3 exit		rdi: code; does not come back
 *	E4 console	al: one byte
 *	E5 clock	rax: virtual nanoseconds since boot
 *	E6 task		rax: number of the running task
 *	E7 cpu		rax: number of the running CPU
 */
	.section .noinstr.text, "ax"

.macro STUB name, port
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
	out	%al, $\port
	ret
	int3
	.size	\name, . - \name
.endm

	STUB	hv_yield, 0xe1
	STUB	hv_sleep, 0xe2
	STUB	hv_clock, 0xe5
	STUB	hv_task, 0xe6
	STUB	hv_cpu, 0xe7

	.globl	hv_putc
	.type	hv_putc, @function
	.balign	16
hv_putc:
	mov	%edi, %eax
	out	%al, $0xe4
	ret
	int3
	.size	hv_putc, . - hv_putc

	.globl	hv_exit
	.type	hv_exit, @function
	.balign	16
hv_exit:
	out	%al, $0xe3
	ud2
	.size	hv_exit, . - hv_exit

	.section .note.GNU-stack, "", @progbits
