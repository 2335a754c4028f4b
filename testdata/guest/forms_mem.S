/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms that move: addressing, RIP-relative operands, strings, prefixes, no-ops. */
#include "forms.inc"

/* Addresses. */
	FORM1	lea_rip, 0, lea form_state(%rip), %rax
	FORM1	lea_sib, 0, lea 0x12345678(%rax,%rcx,4), %rdx
	FORM1	lea_disp8, 0, lea 8(%rax), %rdx
	FORM1	lea_67, 0, lea (%eax,%ecx), %rdx

/* RIP-relative operands: with and without an immediate after the displacement. */
	FORM1	mov_rip, 0, mov form_state+M(%rip), %rax
	FORM1	mov_rip_store, 0, mov %rcx, form_state+M(%rip)
	FORM1	mov_rip_store8, 0, mov %cl, form_state+M(%rip)
	FORM1	mov_rip_imm32, 0, movq $0x12345678, form_state+M(%rip)
	FORM1	mov_rip_imm16, 0, movw $0x1234, form_state+M(%rip)
	FORM1	mov_rip_imm8, 0, movb $0x12, form_state+M(%rip)
	FORM1	add_rip, 0, add form_state+M(%rip), %rax
	FORM1	add_rip_imm, 0, addl $5, form_state+M(%rip)
	FORM1	cmp_rip_imm8, 0, cmpb $5, form_state+M(%rip)
	FORM1	cmp_rip_imm32, 0, cmpq $0x1000, form_state+M(%rip)
	FORM1	test_rip_imm32, 0, testl $0x1000, form_state+M(%rip)
	FORM1	inc_rip, 0, lock incq form_state+M(%rip)
	FORM1	xchg_rip, 0, xchg %rax, form_state+M(%rip)
	FORM1	xadd_rip, 0, lock xadd %rcx, form_state+M(%rip)
	FORM1	cmpxchg_rip, 0, lock cmpxchg %rcx, form_state+M(%rip)
	FORM1	bts_rip_imm, 0, lock btsl $3, form_state+M(%rip)
	FORM1	imul_rip_imm8, 0, imul $100, form_state+M(%rip), %rax
	FORM1	imul_rip_imm32, 0, imul $0x10001, form_state+M(%rip), %rax
	FORM1	shl_rip_imm, 0, shll $3, form_state+M(%rip)
	FORM1	not_rip, 0, notl form_state+M(%rip)
	FORM1	movzx_rip, 0, movzbl form_state+M+1(%rip), %eax
	FORM1	movsxd_rip, 0, movslq form_state+M(%rip), %rax
	FORM1	cmov_rip, 0, cmovg form_state+M(%rip), %rax
	FORM1	setcc_rip, 0, setg form_state+M(%rip)
	FORM1	prefetch_rip, 0, prefetcht0 form_state(%rip)

/* Moves of every width and direction. */
	FORM1	mov_rr, 0, mov %rcx, %rax
	FORMB	mov_rr_alt, 0, 0x48, 0x8b, 0xc1
	FORM1	mov_rr32, 0, mov %ecx, %eax
	FORM1	mov_rr16, 0, mov %cx, %ax
	FORM1	mov_rr8, 0, mov %ch, %al
	FORM1	mov_load, 0, mov M(%rbx), %rax
	FORM1	mov_load32, 0, mov M(%rbx), %eax
	FORM1	mov_load8, 0, mov M+1(%rbx), %al
	FORM1	mov_store, 0, mov %rcx, M(%rbx)
	FORM1	mov_store16, 0, mov %cx, M(%rbx)
	FORM1	mov_imm32, 0, mov $0x12345678, %eax
	FORM1	mov_imm8, 0, mov $0x7f, %al
	FORM1	mov_imm_sx, 0, mov $-2, %rax
	FORM1	mov_mem_imm, 0, movq $-2, M(%rbx)
	FORM1	mov_mem8_imm, 0, movb $2, M(%rbx)
	FORM1	movabs, 0, movabs $0x1122334455667788, %rax
	FORM1	movabs_load, 0, movabs form_state+M, %rax
	FORM1	movabs_load8, 0, movabs form_state+M+1, %al
	FORM1	movabs_store, 0, movabs %rax, form_state+M
	FORM1	movabs_store8, 0, movabs %al, form_state+M
	FORM1	movnti, 0, movnti %rcx, M(%rbx)
	FORM	xlat
	lea	form_src(%rip), %rbp
	xchg	%rbp, %rbx
	and	$31, %eax
	INSN
	xlat
	mov	%rbp, %rbx
	END	xlat

/* Per-CPU and other segments. */
	.section .data..percpu, "aw"
	.balign	8
	.globl	form_percpu
	.type	form_percpu, @object
form_percpu:
	.quad	0
	.size	form_percpu, 8

.macro GS name, insn:vararg
	FORM	\name
	movq	$0x77, %gs:form_percpu
	INSN
	\insn
	mov	%gs:form_percpu, %r12
	END	\name
.endm
	GS	gs_load, mov %gs:form_percpu, %rax
	GS	gs_load32, mov %gs:form_percpu, %eax
	GS	gs_load8, mov %gs:form_percpu, %al
	GS	gs_store, mov %rcx, %gs:form_percpu
	GS	gs_inc, incq %gs:form_percpu
	GS	gs_add_imm, addl $5, %gs:form_percpu
	GS	gs_cmpxchg, cmpxchg %rcx, %gs:form_percpu
	GS	gs_rip, mov %gs:form_percpu(%rip), %rax
	GS	gs_rip_add, addl $5, %gs:form_percpu(%rip)
	FORM1	fs_load, 0, mov %fs:M(%rbx), %rax
	FORM1	cs_load, 0, mov %cs:M(%rbx), %rax
	FORM1	ds_load, 0, mov %ds:M(%rbx), %rax
	FORM1	es_load, 0, mov %es:M(%rbx), %rax
	FORM1	ss_load, 0, mov %ss:M(%rbx), %rax
	FORMB	mov_67_rr, 0, 0x67, 0x48, 0x89, 0xc8
	FORMB	mov_f2_rr, 0, 0xf2, 0x48, 0x89, 0xc8
	FORMB	mov_66_rexw, 0, 0x66, 0x48, 0x89, 0xc8

/* Segment registers. */
	FORM1	mov_ss, F_HOST, mov %ss, %eax
	FORM1	mov_ds, F_HOST, mov %ds, %eax
	FORM	mov_to_ds
	xor	%eax, %eax
	INSN
	mov	%eax, %ds
	END	mov_to_ds
	SKIPPED	mov_to_ss, 0x8e, 0xd0

/* Strings, from form_src to form_buf, at most 31 elements, both ways. */
	.section .rodata
	.balign	64
	.globl	form_src
	.type	form_src, @object
form_src:
	.set	i, 0
	.rept	256
	.byte	(i * 7 + 3) & 0xff
	.set	i, i + 1
	.endr
	.size	form_src, . - form_src

.macro STRING name, insn:vararg
	FORM	\name
	and	$31, %ecx
	lea	form_src+64(%rip), %rsi
	lea	form_buf+512(%rip), %rdi
	INSN
	\insn
	mov	%rdi, %r12
	mov	%rsi, M(%rbx)
	END	\name
.endm
	STRING	movsb, movsb
	STRING	movsq, movsq
	STRING	stosb, stosb
	STRING	stosq, stosq
	STRING	lodsb, lodsb
	STRING	lodsq, lodsq
	STRING	rep_movsb, rep movsb
	STRING	rep_movsl, rep movsl
	STRING	rep_movsq, rep movsq
	STRING	rep_stosb, rep stosb
	STRING	rep_stosq, rep stosq
	STRING	rep_lodsb, rep lodsb
/* Those that compare read form_src on both sides. */
.macro SCAN name, gap, insn:vararg
	FORM	\name
	and	$31, %ecx
	lea	form_src+64(%rip), %rsi
	lea	form_src+64+\gap(%rip), %rdi
	INSN
	\insn
	mov	%rdi, %r12
	mov	%rsi, M(%rbx)
	END	\name
.endm
	SCAN	scasb, 5, scasb
	SCAN	cmpsb, 5, cmpsb
	SCAN	cmpsq, 0, cmpsq
	SCAN	repe_cmpsb, 0, repe cmpsb
	SCAN	repne_cmpsb, 5, repne cmpsb
	SCAN	repe_scasb, 5, repe scasb
	SCAN	repne_scasb, 5, repne scasb
	FORM	rep_movsb_0
	xor	%ecx, %ecx
	INSN
	rep movsb
	END	rep_movsb_0
	FORM	rep_movsb_67
	xor	%ecx, %ecx
	INSN
	.byte	0x67, 0xf3, 0xa4
	END	rep_movsb_67
	FORM	rep_movsb_down
	and	$31, %ecx
	lea	form_src+64(%rip), %rsi
	lea	form_buf+512(%rip), %rdi
	std
	INSN
	rep movsb
	mov	%rdi, %r12
	END	rep_movsb_down

/* No-ops and hints. */
	FORM1	nop, 0, nop
	FORMB	nop_66, 0, 0x66, 0x90
	FORMB	nopl, 0, 0x0f, 0x1f, 0
	FORMB	nopl5, 0, 0x0f, 0x1f, 0x44, 0, 0
	FORMB	nopw9, 0, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	FORMB	nopw_cs, 0, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	FORM1	pause, 0, pause
	FORM1	endbr64, 0, endbr64
	FORMB	endbr32, 0, 0xf3, 0x0f, 0x1e, 0xfb
	FORMB	nop_rex, 0, 0x48, 0x0f, 0x1f, 0xc0
	FORM1	prefetchw, 0, prefetchw (%rsp)
	FORM1	prefetchnta, 0, prefetchnta (%rsp)

/* Lengths: the most that leaves room for a jump after the copy, and more. */
	FORMB	len_10, 0, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8
	FORMB	len_11, 0, 0x48, 0xc7, 0x83, 0x70, 0, 0, 0, 0x78, 0x56, 0x34, 0x12
	FORMB	len_12, 0, 0x48, 0xc7, 0x84, 0x23, 0x70, 0, 0, 0, 0x78, 0x56, 0x34, 0x12
	FORMB	len_14, 0, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
	FORMB	len_15, 0, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0

	.section .note.GNU-stack, "", @progbits
