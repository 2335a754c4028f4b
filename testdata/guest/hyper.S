/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stubs that reach the host. Each is one `out` whose port names the call;
 * ports.h says what is in which register. Nothing may be probed here, as in a
 * kernel's own lowest layer.
 */
#include "../../emu/ports.h"

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

	STUB	hv_yield, KPL_PORT_YIELD
	STUB	hv_sleep, KPL_PORT_SLEEP
	STUB	hv_clock, KPL_PORT_CLOCK
	STUB	hv_task, KPL_PORT_TASK
	STUB	hv_cpu, KPL_PORT_CPU

	.globl	hv_putc
	.type	hv_putc, @function
	.balign	16
hv_putc:
	mov	%edi, %eax
	out	%al, $KPL_PORT_CONSOLE
	ret
	int3
	.size	hv_putc, . - hv_putc

	.globl	hv_exit
	.type	hv_exit, @function
	.balign	16
hv_exit:
	out	%al, $KPL_PORT_EXIT
	ud2
	.size	hv_exit, . - hv_exit

	.section .note.GNU-stack, "", @progbits
