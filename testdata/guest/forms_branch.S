/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms of branches, and forms that use the stack. */
#include "forms.inc"

	.bss
	.balign	64
	.globl	form_state, form_buf
	.type	form_state, @object
	.type	form_buf, @object
form_state:
	.skip	256
	.size	form_state, . - form_state
form_buf:
	.skip	1024
	.size	form_buf, . - form_buf

/* Conditional jumps, short and near. */
	.set	cc, 0
	.irp	c, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	BRANCHB	j\c\()_short, 0, 0x70 + cc, 8
	BRANCHB	j\c\()_near, 0, 0x0f, 0x80 + cc, 8, 0, 0, 0
	.set	cc, cc + 1
	.endr

/* The counting branches, also with a 32-bit counter. */
	BRANCHB	loopne, F_QUIRK, 0xe0, 8
	BRANCHB	loope, F_QUIRK, 0xe1, 8
	BRANCHB	loop, F_QUIRK, 0xe2, 8
	BRANCHB	jrcxz, 0, 0xe3, 8
	BRANCHB	loopne_67, F_QUIRK, 0x67, 0xe0, 8
	BRANCHB	loope_67, F_QUIRK, 0x67, 0xe1, 8
	BRANCHB	loop_67, F_QUIRK, 0x67, 0xe2, 8
	BRANCHB	jecxz, 0, 0x67, 0xe3, 8

/* With prefixes that change nothing: branch hints, bnd. */
	BRANCHB	je_hint, 0, 0x3e, 0x74, 8
	BRANCHB	jne_hint, 0, 0x2e, 0x75, 8
	BRANCHB	je_near_bnd, 0, 0xf2, 0x0f, 0x84, 8, 0, 0, 0
	BRANCHB	jmp_short, 0, 0xeb, 8
	BRANCHB	jmp_near, 0, 0xe9, 8, 0, 0, 0
	BRANCHB	jmp_near_bnd, 0, 0xf2, 0xe9, 8, 0, 0, 0

/* Backwards. */
.macro BACK name, bytes:vararg
	FORM	\name
	jmp	3f
	.byte	0x41, 0xb8, 2, 0, 0, 0		/* the target: mov $2, %r8d */
	jmp	4f
3:	INSN
	.byte	\bytes
	.byte	0x41, 0xb8, 1, 0, 0, 0
4:
	END	\name
.endm
	BACK	jmp_back_short, 0xeb, -10
	BACK	jmp_back_near, 0xe9, -13, 0xff, 0xff, 0xff
	BACK	je_back_short, 0x74, -10
	BACK	je_back_near, 0x0f, 0x84, -14, 0xff, 0xff, 0xff

/* Jumps through a register. */
.macro JMPREG name, reg
	FORM	\name
	lea	2f(%rip), %\reg
	INSN
	jmp	*%\reg
	TAKEN
	END	\name
.endm
	JMPREG	jmp_reg, r11
	.irp	r, rax, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r12
	JMPREG	jmp_\r, \r
	.endr

/* Calls: the callee marks, and stores its return address. */
	.text
	.type	form_callee, @function
	.balign	16
form_callee:
	mov	$2, %r8d
	mov	(%rsp), %r12
	ret
	int3
	.size	form_callee, . - form_callee

	FORM1	call_rel, 0, call form_callee
.macro CALLREG name, reg
	FORM	\name
	lea	form_callee(%rip), %\reg
	INSN
	call	*%\reg
	END	\name
.endm
	CALLREG	call_reg, r11
	.irp	r, rax, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r12
	CALLREG	call_\r, \r
	.endr

/* A call of the next instruction. */
	FORM	call_next
	INSN
	.byte	0xe8, 0, 0, 0, 0
	pop	%r12
	END	call_next

/* Through memory: refused by the kernels that emulate calls and jumps. */
	FORM	jmp_mem
	lea	2f(%rip), %r11
	mov	%r11, form_state+M(%rip)
	INSN
	jmp	*form_state+M(%rip)
	TAKEN
	END	jmp_mem

	FORM	jmp_mem_reg
	lea	2f(%rip), %r11
	mov	%r11, M(%rbx)
	INSN
	jmp	*M(%rbx)
	TAKEN
	END	jmp_mem_reg

	FORM	jmp_mem_index
	lea	2f(%rip), %r11
	mov	%r11, M(%rbx)
	mov	$2, %esi
	INSN
	jmp	*M-16(%rbx,%rsi,8)
	TAKEN
	END	jmp_mem_index

	FORM	call_mem
	lea	form_callee(%rip), %r11
	mov	%r11, form_state+M(%rip)
	INSN
	call	*form_state+M(%rip)
	END	call_mem

	FORM	call_mem_reg
	lea	form_callee(%rip), %r11
	mov	%r11, M(%rbx)
	INSN
	call	*M(%rbx)
	END	call_mem_reg

/* Returns, to a pushed address. */
.macro FORM_RET name, below, flags, bytes:vararg
	FORM	\name
	.if \below
	sub	$\below, %rsp
	.endif
	lea	2f(%rip), %r11
	push	%r11
	INSN
	.byte	\bytes
	TAKEN
	END	\name, \flags
.endm
	FORM_RET ret, 0, 0, 0xc3
	FORM_RET ret_imm16, 64, F_QUIRK, 0xc2, 0x10, 0
	FORM_RET ret_imm16_0, 0, 0, 0xc2, 0, 0
	FORM_RET rep_ret, 0, 0, 0xf3, 0xc3
	FORM_RET bnd_ret, 0, 0, 0xf2, 0xc3

/* Far and privileged transfers: not run, and mostly not to be probed. */
	SKIPPED	lret, 0x48, 0xcb
	SKIPPED	lret_imm16, 0x48, 0xca, 8, 0
	SKIPPED	ljmp_mem, 0x48, 0xff, 0x6b, M
	SKIPPED	lcall_mem, 0x48, 0xff, 0x5b, M
	SKIPPED	iretq, 0x48, 0xcf
	SKIPPED	int3, 0xcc
	SKIPPED	int_80, 0xcd, 0x80
	SKIPPED	int1, 0xf1
	SKIPPED	syscall, 0x0f, 0x05
	SKIPPED	sysret, 0x48, 0x0f, 0x07
	SKIPPED	hlt, 0xf4
	SKIPPED	ud2, 0x0f, 0x0b
	SKIPPED	ud1, 0x0f, 0xb9, 0xc1
	SKIPPED	vmcall, 0x0f, 0x01, 0xc1
	SKIPPED	call_67, 0x67, 0xff, 0xd0
	SKIPPED	jmp_67, 0x67, 0xff, 0xe0
	SKIPPED	xen_prefix, 0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x90
	SKIPPED	kvm_prefix, 0x0f, 0x0b, 0x6b, 0x76, 0x6d, 0x90

/* Flags on the stack, and the interrupt flag. */
	FORM	pushfq_popfq
	INSN
	pushfq
	mov	(%rsp), %r12
	popfq
	END	pushfq_popfq

	FORM	popfq
	push	IN_FL(%rbx)
	INSN
	popfq
	END	popfq

	FORM	pushfw
	INSN
	pushfw
	movzwl	(%rsp), %r12d
	END	pushfw, F_QUIRK

/* Emulated, eight bytes are popped: the six after the first two are made 0. */
	FORM	popfw
	sub	$64, %rsp
	push	$0
	push	$0
	pushw	IN_FL(%rbx)
	INSN
	popfw
	END	popfw, F_QUIRK

	FORM1	cli, 0, cli
	FORM1	sti, 0, sti
	FORM	sti_after_cli
	cli
	INSN
	sti
	END	sti_after_cli

/* Pushes and pops. */
.macro FORM_PUSH name, insn:vararg
	FORM	\name
	INSN
	\insn
	mov	(%rsp), %r12
	END	\name
.endm
	FORM	push_rsp
	INSN
	push	%rsp
	mov	(%rsp), %r12
	END	push_rsp
	FORM_PUSH push_rax, push %rax
	FORM_PUSH push_r9, push %r9
	FORM_PUSH push_imm, push $-5
	FORM_PUSH push_imm32, push $0x12345678
	FORM_PUSH push_mem, pushq M(%rbx)
	FORM_PUSH push_mem_rip, pushq form_state+M(%rip)
	FORM_PUSH push_fs, push %fs
	FORM_PUSH push_gs, push %gs
	FORM	push_word
	push	$0
	INSN
	push	%ax
	mov	(%rsp), %r12
	END	push_word

	FORM	pop_rax
	push	%rcx
	INSN
	pop	%rax
	END	pop_rax
	FORM	pop_r8
	push	%rcx
	INSN
	pop	%r8
	END	pop_r8
	FORM	pop_mem
	push	%rcx
	INSN
	popq	M(%rbx)
	END	pop_mem
	FORM	pop_mem_rip
	push	%rcx
	INSN
	popq	form_state+M(%rip)
	END	pop_mem_rip
	FORM	pop_mem_rsp
	push	%rax
	push	%rcx
	INSN
	popq	(%rsp)
	mov	(%rsp), %r12
	END	pop_mem_rsp
	FORM	pop_rsp
	push	%rsp
	INSN
	pop	%rsp
	END	pop_rsp
	FORM	pop_fs
	push	$0
	INSN
	pop	%fs
	END	pop_fs

	FORM	enter
	INSN
	enter	$16, $0
	mov	(%rbp), %r12
	END	enter
	FORM	enter_nested
	mov	%rsp, %rbp
	sub	$32, %rsp
	INSN
	enter	$16, $1
	mov	%rbp, %r12
	END	enter_nested
	FORM	leave
	mov	%r13, %rbp
	sub	$64, %rsp
	push	%rcx
	mov	%rsp, %rbp
	sub	$24, %rsp
	INSN
	leave
	mov	%rbp, %r12
	END	leave
	FORM	leave_like
	INSN
	mov	%rsp, %rax
	END	leave_like
	FORM1	mov_rsp_lea, 0, lea -8(%rsp), %rax

	.section .note.GNU-stack, "", @progbits
