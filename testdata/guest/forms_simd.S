/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms of the x87, MMX, SSE and AVX units. They load what they use. */
#include "forms.inc"

	.section .rodata
	.balign	32
	.globl	form_y
	.type	form_y, @object
form_y:
	.quad	0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444
	.size	form_y, . - form_y
form_real:
	.double	1.5

/* x87. */
.macro X87 name, insn:vararg
	FORM	\name
	fninit
	fldl	form_real(%rip)
	fldpi
	INSN
	\insn
	fstpl	M2(%rbx)
	fninit
	END	\name, F_FPU
.endm
	X87	fadd, fadd %st(1), %st
	X87	fmulp, fmulp %st, %st(1)
	X87	fxch, fxch %st(1)
	X87	fld_mem, fldl form_real(%rip)
	X87	fild_mem, fildq M(%rbx)
	X87	fadd_mem, faddl form_real(%rip)
	X87	fist_mem, fistl M(%rbx)
	X87	fnstsw, fnstsw %ax
	X87	fnstcw, fnstcw M(%rbx)
	X87	fldcw, fldcw form_cw(%rip)
	X87	fwait, fwait
	X87	fchs, fchs
	X87	fucomi, fucomi %st(1), %st
	X87	fcmov, fcmovb %st(1), %st
	.section .rodata
form_cw:
	.word	0x37f

/* MMX: 0F 60 to 7F and D0 to FE. */
.macro MMX name, insn:vararg
	FORM	\name
	movq	form_y(%rip), %mm0
	movq	form_y+8(%rip), %mm1
	INSN
	\insn
	movq	%mm0, M2(%rbx)
	emms
	END	\name, F_FPU
.endm
	MMX	punpcklbw, punpcklbw %mm1, %mm0
	MMX	movd_mm, movd %ecx, %mm0
	MMX	movq_mm, movq %rcx, %mm0
	MMX	movd_mm_store, movd %mm1, %eax
	MMX	pcmpeqb, pcmpeqb %mm1, %mm0
	MMX	psrlw, psrlw %mm1, %mm0
	MMX	psllw_imm, psllw $3, %mm0
	MMX	paddq, paddq %mm1, %mm0
	MMX	pand, pand %mm1, %mm0
	MMX	pxor_mm, pxor form_y+16(%rip), %mm0
	MMX	emms, emms

/* SSE. */
.macro SSE name, insn:vararg
	FORM	\name
	movups	form_y(%rip), %xmm0
	movups	form_y+16(%rip), %xmm1
	INSN
	\insn
	movups	%xmm0, M2(%rbx)
	END	\name, F_FPU
.endm
	SSE	movups_load, movups form_y+8(%rip), %xmm0
	SSE	movaps_rr, movaps %xmm1, %xmm0
	SSE	movaps_rip, movaps form_y(%rip), %xmm0
	SSE	movups_store, movups %xmm1, 0xa0(%rbx)
	SSE	movd_xmm, movd %ecx, %xmm0
	SSE	movq_xmm, movq %rcx, %xmm0
	SSE	movdqa, movdqa %xmm1, %xmm0
	SSE	pxor, pxor %xmm1, %xmm0
	SSE	pshufd, pshufd $0x1b, %xmm1, %xmm0
	SSE	pshufd_rip, pshufd $0x1b, form_y(%rip), %xmm0
	SSE	punpcklqdq, punpcklqdq %xmm1, %xmm0
	SSE	xorps, xorps %xmm1, %xmm0
	SSE	addps, addps %xmm1, %xmm0
	SSE	addsd, addsd form_real(%rip), %xmm0
	SSE	cvtsi2sd, cvtsi2sdq %rcx, %xmm0
	SSE	cvttsd2si, cvttsd2si form_real(%rip), %rax
	SSE	ucomisd, ucomisd form_real(%rip), %xmm0
	SSE	psrldq, psrldq $3, %xmm0
	SSE	pmovmskb, pmovmskb %xmm1, %eax
	SSE	movnti_sse, movntps %xmm1, 0xc0(%rbx)
	SSE	stmxcsr, stmxcsr M(%rbx)
	FORM	pshufb
	movups	form_y(%rip), %xmm0
	movups	form_y+16(%rip), %xmm1
	INSN
	pshufb	%xmm1, %xmm0
	movups	%xmm0, M2(%rbx)
	END	pshufb, F_FPU + F_CPU

/* AVX: the kernel's decoder takes their opcodes for one-byte ones. */
.macro AVX name, flags, bytes:vararg
	FORM	\name
	vmovdqu	form_y(%rip), %ymm0
	vmovdqu	form_y(%rip), %ymm1
	INSN
	.byte	\bytes
	END	\name, F_AVX + \flags, STORE_Y
.endm
.macro STORE_Y
	vmovdqu	%ymm0, M2(%rbx)
	vmovdqu	%ymm1, M2+32(%rbx)
	mov	M2(%rbx), %r9
	mov	%r9, OUT_Y(%rbx)
	mov	M2+24(%rbx), %r9
	mov	%r9, OUT_Y+8(%rbx)
.endm
	AVX	vzeroupper, F_QUIRK, 0xc5, 0xf8, 0x77
	AVX	vpxor, 0, 0xc5, 0xfd, 0xef, 0xc0
	AVX	vaddps_58, 0, 0xc5, 0xfc, 0x58, 0xc0
	AVX	vmovups_10, 0, 0xc5, 0xfc, 0x10, 0xc8
	AVX	vmovdqu_rip, 0, 0xc5, 0xfe, 0x6f, 0x0d, 0, 0, 0, 0
	AVX	vpshufb, 0, 0xc4, 0xe2, 0x7d, 0x00, 0xc1
	SKIPPED	evex, 0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0
	SKIPPED	xop, 0x8f, 0xe9, 0x78, 0x01, 0xc9
	SKIPPED	threednow, 0x0f, 0x0f, 0xc1, 0x9e

	.section .note.GNU-stack, "", @progbits
