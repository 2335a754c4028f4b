/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions for jump optimization, each with one reason why a probe at its
 * first instruction can be replaced by a jump, or cannot. All take x and
 * return a value that depends on every instruction in them.
 */
	.text

.macro FUNC name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm
.macro END name
	.size	\name, . - \name
.endm

/* Can be: 3 + 4 bytes, nothing comes into them. x + 9. */
FUNC opt_yes
	mov	%rdi, %rax
	add	$1, %rax
	xor	%rcx, %rcx
	lea	8(%rax), %rax
	ret
	int3
END opt_yes

/* Can be: one instruction of five bytes. */
FUNC opt_yes_five
	mov	$7, %eax
	add	%rdi, %rax
	ret
	int3
END opt_yes_five

/* Can be, with a RIP-relative operand to fix up. */
FUNC opt_yes_rip
	mov	opt_word(%rip), %rax
	add	%rdi, %rax
	ret
	int3
END opt_yes_rip

/* Can be, with pushes and pops in the region; a jump back to its start is fine. */
FUNC opt_yes_loop
	push	%rbx
	push	%rbp
	mov	%rdi, %rbx
	mov	$3, %ebp
	xor	%eax, %eax
1:	add	%rbx, %rax
	dec	%ebp
	jnz	1b
	pop	%rbp
	pop	%rbx
	ret
	int3
END opt_yes_loop

/* Can be at +5 only: a jump comes to +3, inside what +0 would need. */
FUNC opt_no_jump_in
	mov	%rdi, %rax
2:	add	$3, %rax
	test	$8, %al
	jz	2b
	ret
	int3
END opt_no_jump_in

/* The same with a near jump from further away. */
FUNC opt_no_near_jump_in
	xor	%eax, %eax
2:	add	%rdi, %rax
	add	$1, %rax
	cmp	$5, %rdi
	ja	3f
	lea	1(%rdi), %rdi
	.byte	0xe9
	.long	2b - . - 4
3:	ret
	int3
END opt_no_near_jump_in

/* Not in older kernels: an indirect jump in the function may go anywhere. */
FUNC opt_no_indirect
	mov	%rdi, %rax
	lea	1f(%rip), %rdx
	jmp	*%rdx
	int3
1:	add	$4, %rax
	ret
	int3
END opt_no_indirect

/* Nor with a jump to a thunk, which is an indirect jump in disguise. */
FUNC opt_no_thunk
	mov	%rdi, %rax
	lea	leaf(%rip), %r11
	jmp	__x86_indirect_thunk_r11
	int3
END opt_no_thunk

/* Not: the function ends before five bytes. */
FUNC opt_no_short
	mov	%edi, %eax
	ret
	int3
END opt_no_short

/* Not: an instruction in the region cannot be copied (a call). */
FUNC opt_no_call
	sub	$8, %rsp
	call	leaf
	add	$8, %rsp
	ret
	int3
END opt_no_call

/* Not: a conditional jump in the region. */
FUNC opt_no_jcc
	test	%rdi, %rdi
	je	1f
	add	$1, %rdi
1:	mov	%rdi, %rax
	ret
	int3
END opt_no_jcc

/* Not: the region holds an instruction with an exception-table entry. */
FUNC opt_no_extable
1:	mov	(%rdi), %rax
	mov	%rax, %rdx
	add	$1, %rax
	ret
	int3
2:	mov	$-99, %rax
	ret
	int3
END opt_no_extable
	.pushsection __ex_table, "a"
	.balign	4
	.long	1b - ., 2b - ., 1
	.popsection

/* Not optimized: the kernel does not boost x87 instructions. */
FUNC opt_no_x87
	fnop
	mov	%rdi, %rax
	add	$2, %rax
	ret
	int3
END opt_no_x87

/* Not in 6.1: a shift is not either; from 6.9 on it is. */
FUNC opt_no_shift
	shl	$3, %rdi
	mov	%rdi, %rax
	add	$2, %rax
	ret
	int3
END opt_no_shift

/* Not: a static branch lies in the region. */
FUNC opt_no_jump_label
	mov	%rdi, %rax
1:	.byte	0x0f, 0x1f, 0x44, 0, 0
	add	$2, %rax
	ret
	int3
2:	add	$3, %rax
	ret
	int3
END opt_no_jump_label
	.pushsection __jump_table, "aw"
	.balign	8
	.long	1b - ., 2b - .
	.quad	key_off - .
	.popsection

/* Can be: a lock prefix is copied with its instruction. */
FUNC opt_yes_lock
	lock incq opt_word(%rip)
	mov	%rdi, %rax
	ret
	int3
END opt_yes_lock

/*
 * Not: bytes that the kernel's decoder gives up on (an opcode that needs a VEX
 * prefix, without one) lie in the function. Nor can any place after them be
 * probed.
 */
FUNC opt_no_undecodable
	mov	%rdi, %rax
	add	$5, %rax
	jmp	1f
	.byte	0x0f, 0x38, 0xf2, 0xc0
1:	ret
	int3
END opt_no_undecodable

/* 25 short instructions: probes on them are each other's neighbours. */
FUNC opt_neighbours
	mov	%rdi, %rax
	.rept	24
	lea	1(%rax), %rax
	.endr
	ret
	int3
END opt_neighbours

/* Two callers of one function that pops its own arguments: ret imm16. */
	.type	callee_pop, @function
	.balign	16
callee_pop:
	mov	8(%rsp), %rax
	add	16(%rsp), %rax
	ret	$16
	int3
	.size	callee_pop, . - callee_pop

FUNC callee_pop_test
	push	%rdi
	push	%rsi
	call	callee_pop
	ret
	int3
END callee_pop_test

	.data
	.balign	8
	.globl	opt_word
	.type	opt_word, @object
opt_word:
	.quad	40
	.size	opt_word, 8

	.section .note.GNU-stack, "", @progbits
