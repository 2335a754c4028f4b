/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's functions without an fentry site. Their instructions have known
 * lengths, because what is asked of them is "a probe at +3", or "at +0 and +7
 * at once"; each begins on 64 bytes.
 */
	.text

.macro FUNC name
	.globl	\name
	.type	\name, @function
	.balign	64
\name:
.endm
.macro END name
	ret
	int3
	.size	\name, . - \name
.endm

/* What the others have in common: returns rdi + 1 and leaves rdx = rdi + 9. */
.macro BODY
	mov	%rdi, %rax		/* 3 bytes */
	add	$1, %rax		/* 4 */
	xor	%rcx, %rcx		/* 3 */
	lea	8(%rax), %rdx		/* 4 */
.endm

/* Straight-line, 3 4 3 4 3 1: room for a jump at +0, +3 and +7. Returns x + 9. */
FUNC demo_tgt
	BODY
	mov	%rdx, %rax
END demo_tgt

/* Begins with an instruction that cannot be boosted. Returns x + 1. */
FUNC demo_tgt_nb
	prefetchw (%rsp)
	BODY
END demo_tgt_nb

/* Begins with a jump, a call, a conditional jump: all of them emulated. */
FUNC demo_tgt_jmp
	jmp	1f
1:	BODY
END demo_tgt_jmp

FUNC demo_leaf
	mov	%rdi, %rax
END demo_leaf

FUNC demo_tgt_call
	call	demo_leaf
	add	$1, %rax
	xor	%rcx, %rcx
	lea	8(%rax), %rdx
END demo_tgt_call

FUNC demo_tgt_jcc
	je	1f
1:	BODY
END demo_tgt_jcc

FUNC demo_outer
	sub	$8, %rsp
	mov	%rdi, %rax
	nopl	0(%rax)
	call	demo_tgt
	add	$8, %rsp
END demo_outer

/* Loads *rdi at +3; a bad address is caught, and -99 comes back. */
FUNC demo_tgt_flt
	mov	%rdi, %rdx
1:	mov	(%rdx), %rax
	ret
2:	mov	$-99, %rax
END demo_tgt_flt
	.pushsection __ex_table, "a"
	.balign	4
	.long	1b - ., 2b - ., 1
	.popsection

/* The same load with nothing to catch it. */
FUNC demo_bad_insn
	mov	(%rdi), %rax
END demo_bad_insn

	.section .note.GNU-stack, "", @progbits
