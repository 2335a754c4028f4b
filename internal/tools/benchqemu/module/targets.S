/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The probed functions. All but the traced ones of traced.c have no fentry
 * site, so that the instruction at their entry decides how a probe works.
 *
 * There are copies of each, COPY_STRIDE bytes apart: what is found fast in the
 * cache that QEMU keeps of translated code is decided by addresses, and one
 * place alone can be half as fast again as another.
 */
#include <linux/linkage.h>
#include "copies.h"

	.text
	.balign 64
.Lcopies:

.macro COPY n
/* Can be boosted, and optimized: 3 + 4 bytes, and nothing jumps into them. */
SYM_FUNC_START(target_plain_\n)
	mov	%rdi, %rax
	add	$1, %rax
	xor	%rcx, %rcx
	lea	8(%rax), %rax
	RET
SYM_FUNC_END(target_plain_\n)

/* Right after it, for a probe that no call passes. */
SYM_FUNC_START(target_next_door_\n)
	mov	%rdi, %rax
	add	$2, %rax
	RET
SYM_FUNC_END(target_next_door_\n)

/* Not in the table of what can be boosted: 0f 0d. */
SYM_FUNC_START(target_stepped_\n)
	prefetchw (%rsp)
	mov	%rdi, %rax
	add	$1, %rax
	RET
SYM_FUNC_END(target_stepped_\n)

/* Emulated, since 5.13 and in Debian's 5.10: there is no copy to execute. */
SYM_FUNC_START(target_jmp_\n)
	jmp	1f
1:	mov	%rdi, %rax
	RET
SYM_FUNC_END(target_jmp_\n)

SYM_FUNC_START(target_call_\n)
	call	target_next_door_\n
	RET
SYM_FUNC_END(target_call_\n)

/* Probed at the branch, 3 bytes into it. */
SYM_FUNC_START(target_jcc_\n)
	test	%rdi, %rdi
	je	1f
	add	$1, %rdi
1:	mov	%rdi, %rax
	RET
SYM_FUNC_END(target_jcc_\n)

	.org .Lcopies + (\n + 1) * COPY_STRIDE, 0xcc
.endm

	COPY 0
	COPY 1
	COPY 2
	COPY 3
	COPY 4
	COPY 5
	COPY 6
	COPY 7

/* Its probe's handler calls the others. */
SYM_FUNC_START(target_outer)
	mov	%rdi, %rax
	add	$3, %rax
	RET
SYM_FUNC_END(target_outer)
