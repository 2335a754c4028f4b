/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms that only a kernel may run, and those whose answer is the machine's. */
#include "forms.inc"

	FORM1	mov_from_cr0, F_HOST, mov %cr0, %rax
	FORM1	mov_from_cr2, F_HOST, mov %cr2, %rax
	FORM1	mov_from_cr3, F_HOST, mov %cr3, %rax
	FORM1	mov_from_cr4, F_HOST, mov %cr4, %rax
	FORM1	mov_from_cr8, F_HOST, mov %cr8, %rax
	FORM	mov_to_cr0
	mov	%cr0, %rax
	INSN
	mov	%rax, %cr0
	END	mov_to_cr0, F_HOST
	FORM	mov_to_cr2
	mov	%cr2, %rax
	INSN
	mov	%rax, %cr2
	END	mov_to_cr2, F_HOST
	FORM1	mov_from_dr7, F_HOST, mov %dr7, %rax
	FORM	mov_to_dr7
	mov	%dr7, %rax
	INSN
	mov	%rax, %dr7
	END	mov_to_dr7, F_HOST
	FORM1	clts, 0, clts
	FORM1	smsw, F_HOST, smsw %eax
	FORM1	sldt, F_HOST, sldt %eax
	FORM1	str, F_HOST, str %eax
	FORM1	sgdt, F_HOST, sgdt M2(%rbx)
	FORM1	sidt, F_HOST, sidt M2(%rbx)
	FORM	lar
	xor	%ecx, %ecx
	INSN
	lar	%cx, %eax
	END	lar
	FORM	lsl
	xor	%ecx, %ecx
	INSN
	lsl	%cx, %eax
	END	lsl
	FORM	rdmsr
	mov	$0xc0000080, %ecx	/* EFER */
	INSN
	rdmsr
	END	rdmsr, F_HOST
	FORM1	rdtsc, F_HOST, rdtsc
	FORM	cpuid
	xor	%eax, %eax
	xor	%ecx, %ecx
	mov	%rbx, %rbp
	INSN
	cpuid
	mov	%rbp, %rbx
	END	cpuid, F_HOST
	FORM1	lfence, 0, lfence
	FORM1	mfence, 0, mfence
	FORM1	sfence, 0, sfence
	FORM1	clflush, 0, clflush M(%rbx)
	FORM1	wbinvd, 0, wbinvd
	FORM1	invlpg, 0, invlpg M(%rbx)

	SKIPPED	invd, 0x0f, 0x08
	SKIPPED	swapgs, 0x0f, 0x01, 0xf8
	SKIPPED	in_imm, 0xe4, 0x80
	SKIPPED	in_dx, 0xec
	SKIPPED	out_imm, 0xe6, 0x80
	SKIPPED	out_dx, 0xee
	SKIPPED	rep_outsb, 0xf3, 0x6e
	SKIPPED	insb, 0x6c
	SKIPPED	wrmsr, 0x0f, 0x30
	SKIPPED	lgdt, 0x0f, 0x01, 0x53, 0x70
	SKIPPED	ltr, 0x0f, 0x00, 0xd8
	SKIPPED	clac, 0x0f, 0x01, 0xca
	SKIPPED	stac, 0x0f, 0x01, 0xcb
	SKIPPED	xgetbv, 0x0f, 0x01, 0xd0
	SKIPPED	rdtscp, 0x0f, 0x01, 0xf9
	SKIPPED	monitor, 0x0f, 0x01, 0xc8
	SKIPPED	rdrand, 0x48, 0x0f, 0xc7, 0xf0
	SKIPPED	rdpkru, 0x0f, 0x01, 0xee

	.section .note.GNU-stack, "", @progbits
