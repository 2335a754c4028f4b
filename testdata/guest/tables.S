/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What in a kernel comes from assembly or from a build tool: static-call
 * trampolines and keys, thunks and the sites that use them, entry code.
 */
.macro FUNC name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm
.macro END name
	.size	\name, . - \name
.endm

/* A trampoline: a jump that boot and updates rewrite, then a mark. */
.macro TRAMP name, func
	.section .static_call.text, "ax"
	.globl	__SCT__\name
	.type	__SCT__\name, @function
	.balign	4
__SCT__\name:
	.ifb \func
	ret
	int3
	nop
	nop
	nop
	.else
	.byte	0xe9
	.long	\func - . - 4
	.endif
	.byte	0x0f, 0xb9, 0xcc
	.size	__SCT__\name, . - __SCT__\name
	.section .static_call_tramp_key, "a"
	.balign	4
	.long	__SCT__\name - ., __SCK__\name - .
	.data
	.globl	__SCK__\name
	.type	__SCK__\name, @object
	.balign	8
__SCK__\name:
	.ifb \func
	.quad	0
	.else
	.quad	\func
	.endif
	.quad	0
	.size	__SCK__\name, 16
.endm

	TRAMP	op, static_call_target
	TRAMP	null
	TRAMP	ret0, __static_call_return0

	.text
/* u64 static_call_tail_test(x): a tail call through the trampoline. */
FUNC static_call_tail_test
	add	$1, %rdi
1:	jmp	__SCT__op
	int3
	.pushsection .static_call_sites, "aw"
	.balign	4
	.long	1b - ., __SCK__op + 1 - .
	.popsection
END static_call_tail_test

/*
 * u64 return_thunk_test(x): ends in a jump to the return thunk, which boot
 * rewrites to a plain return where the CPU needs no thunk. Returns x + 9.
 */
FUNC return_thunk_test
	lea	9(%rdi), %rax
1:	jmp	__x86_return_thunk
	int3
	.pushsection .return_sites, "a"
	.long	1b - .
	.popsection
END return_thunk_test

/*
 * u64 retpoline_call_test(x), retpoline_jump_test(x): indirect branches by
 * thunk, listed as sites that boot may turn into plain indirect branches.
 */
FUNC retpoline_call_test
	sub	$8, %rsp
	lea	leaf(%rip), %rax
1:	call	__x86_indirect_thunk_rax
	add	$8, %rsp
	ret
	int3
	.pushsection .retpoline_sites, "a"
	.long	1b - .
	.popsection
END retpoline_call_test

FUNC retpoline_jump_test
	lea	leaf(%rip), %r11
1:	jmp	__x86_indirect_thunk_r11
	int3
	.pushsection .retpoline_sites, "a"
	.long	1b - .
	.popsection
END retpoline_jump_test

/*
 * u64 alternative_test(x): x + 1 in the file, x + 2 once boot has put in the
 * alternative for the feature that every CPU has (X86_FEATURE_ALWAYS).
 */
FUNC alternative_test
1:	lea	1(%rdi), %rax
2:	ret
	int3
END alternative_test
	.pushsection .altinstructions, "a"
	.long	1b - ., 3f - .
	.word	3 * 32 + 21
	.byte	2b - 1b, 4f - 3f
	.popsection
	.pushsection .altinstr_replacement, "ax"
3:	lea	2(%rdi), %rax
4:
	.popsection

/* Two symbols of one name, in two sections of text: neither is "the" one. */
	.type	name_show, @function
	.balign	16
name_show:
	lea	1(%rdi), %rax
	ret
	int3
	.size	name_show, . - name_show

	.section .text..__x86.indirect_thunk, "ax"
.macro THUNK reg
FUNC __x86_indirect_thunk_\reg
	call	2f
1:	pause
	lfence
	jmp	1b
2:	mov	%\reg, (%rsp)
	ret
	int3
END __x86_indirect_thunk_\reg
.endm
	.irp r, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	THUNK	\r
	.endr

FUNC __x86_return_thunk
	ret
	int3
END __x86_return_thunk

/*
 * How a jprobe's handler ends: back on the stack that the probe saved, into a
 * trap that lies between these two symbols. Not to be probed.
 */
	.section .kprobes.text, "ax"
	.globl	jprobe_return, jprobe_return_end
	.type	jprobe_return, @function
	.balign	16
jprobe_return:
	mov	%gs:jprobe_saved_sp, %rbx
	xchg	%rbx, %rsp
	int3
jprobe_return_end:
	nop
	.size	jprobe_return, . - jprobe_return

/* Entry code: never runs here, and may not be probed. */
	.section .entry.text, "ax"
FUNC entry_SYSCALL_64
	swapgs
	mov	%rsp, %gs:this_cpu_off
	push	%rax
	pop	%rax
	swapgs
	sysretq
	int3
END entry_SYSCALL_64

.macro IDTENTRY name, func
FUNC \name
	cld
	push	$-1
	push	%rax
	push	%rdi
	lea	16(%rsp), %rdi
	call	\func
	pop	%rdi
	pop	%rax
	add	$8, %rsp
	iretq
	int3
END \name
.endm
	IDTENTRY asm_exc_divide_error, exc_int3
	IDTENTRY asm_exc_int3, exc_int3
	IDTENTRY asm_exc_page_fault, exc_int3

/* Where a boot loader would jump to; the first code of the image. */
	.section .head.text, "ax"
FUNC startup_64
	cli
	cld
	call	start_kernel
1:	hlt
	jmp	1b
END startup_64

	.section .note.GNU-stack, "", @progbits
