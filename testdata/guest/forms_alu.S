/* SPDX-License-Identifier: GPL-2.0-only */
/* Forms that compute: arithmetic, shifts, bits, conditions, conversions. */
#include "forms.inc"

/* The eight operations that share their encodings. */
	.irp	op, add, or, adc, sbb, and, sub, xor, cmp
	FORM1	\op\()_rr, 0, \op %rcx, %rax
	FORM1	\op\()_rr32, 0, \op %ecx, %eax
	FORM1	\op\()_rr8, 0, \op %cl, %al
	FORM1	\op\()_mr, 0, \op %rcx, M(%rbx)
	FORM1	\op\()_rm, 0, \op M(%rbx), %rax
	FORM1	\op\()_al_imm, 0, \op $0x35, %al
	FORM1	\op\()_rax_imm, 0, \op $0x12345678, %rax
	FORM1	\op\()_imm8, 0, \op $-3, %rdx
	FORM1	\op\()_imm32, 0, \op $0x1234567, %rdx
	FORM1	\op\()_mem_imm8, 0, \op\()q $7, M(%rbx)
	FORM1	\op\()_mem8_imm8, 0, \op\()b $7, M(%rbx)
	.endr
	FORM1	add_ax_imm16, 0, add $0x1234, %ax
	FORM1	lock_add, 0, lock addq $3, M(%rbx)
	FORM1	lock_or, 0, lock orl $5, M(%rbx)

	FORM1	test_rr, 0, test %rcx, %rax
	FORM1	test_rr8, 0, test %cl, %al
	FORM1	test_al_imm, 0, test $0x12, %al
	FORMB	test_imm, 0, 0xa9, 0x34, 0x12, 0, 0
	FORM1	test_imm_f6, 0, testb $0x12, %cl
	FORM1	test_imm_f7, 0, test $0x1234, %ecx
	FORM1	test_mem_imm, 0, testl $0x1000, M(%rbx)

/* F6 and F7: not, neg, mul, div. */
	FORM1	not, 0, not %rax
	FORM1	not8, 0, not %al
	FORM1	not_mem, 0, notq M(%rbx)
	FORM1	neg, 0, neg %rax
	FORM1	neg8, 0, neg %al
	FORM1	neg_mem, 0, negl M(%rbx)
	FORM1	mul, 0, mul %rcx
	FORM1	mul8, 0, mul %cl
	FORM1	imul1, 0, imul %rcx
	FORM1	imul2, 0, imul %rcx, %rax
	FORM1	imul2_mem, 0, imul M(%rbx), %rax
	FORMB	imul3, 0, 0x48, 0x6b, 0xc1, 0x64
	FORM1	imul3_imm32, 0, imul $0x12345, %rcx, %rax
.macro FORM_DIV name, insn:vararg
	FORM	\name
	xor	%edx, %edx
	shr	$1, %rax
	or	$1, %rcx
	INSN
	\insn
	END	\name
.endm
	FORM_DIV div, div %rcx
	FORM_DIV idiv, idiv %rcx
	FORM_DIV div32, div %ecx
	FORM	div8
	movzbl	%al, %eax
	or	$0x80, %cl
	INSN
	div	%cl
	END	div8

/* FE and FF: inc, dec. */
	FORMB	inc, 0, 0xff, 0xc0
	FORM1	inc64, 0, inc %rax
	FORM1	inc8, 0, inc %al
	FORM1	inc_mem, 0, incq M(%rbx)
	FORM1	inc_mem8, 0, incb M(%rbx)
	FORM1	lock_inc, 0, lock incl M(%rbx)
	FORM1	dec, 0, dec %rax
	FORM1	dec8, 0, dec %al
	FORM1	dec_mem, 0, decl form_state+M(%rip)
	FORM1	dec_mem8, 0, decb M(%rbx)

/* C0, C1, D0 to D3: shifts by an immediate, by one, by cl. */
	.irp	op, rol, ror, rcl, rcr, shl, shr, sar
	FORM1	\op\()_1, 0, \op $1, %rax
	FORM1	\op\()_imm, 0, \op $5, %rax
	FORM1	\op\()_cl, 0, \op %cl, %rax
	FORM1	\op\()8_1, 0, \op $1, %al
	FORM1	\op\()8_imm, 0, \op $3, %al
	FORM1	\op\()8_cl, 0, \op %cl, %al
	.endr
	FORM1	shl_mem, 0, shlq $4, M(%rbx)
	FORM1	sar_mem_cl, 0, sarl %cl, M(%rbx)
	FORMB	sal_alias, 0, 0x48, 0xc1, 0xf0, 5	/* /6, an alias of shl */
	FORM1	shld_imm, 0, shld $7, %rcx, %rax
	FORM1	shld_cl, 0, shld %cl, %rdx, %rax
	FORM1	shrd_imm, 0, shrd $7, %rcx, %rax
	FORM1	shrd_cl, 0, shrd %cl, %rdx, %rax

/* Bits. */
	.irp	op, bt, bts, btr, btc
	FORM1	\op\()_rr, 0, \op %rcx, %rax
	FORM1	\op\()_imm, 0, \op $11, %rax
	FORM1	\op\()_mem, 0, \op\()l $9, M(%rbx)
	.endr
	FORM1	lock_bts, 0, lock btsl $3, M(%rbx)
	FORM1	bsf, 0, bsf %rcx, %rax
	FORM1	bsr, 0, bsr %rcx, %rax
	FORM1	bswap, 0, bswap %rax
	FORM1	bswap32, 0, bswap %ecx

/* Conditions. */
	.irp	c, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	FORM1	set\c, 0, set\c %al
	FORM1	cmov\c, 0, cmov\c %rcx, %rax
	.endr
	FORM1	cmove_mem, 0, cmove M(%rbx), %rax

/* Exchanges. */
	FORMB	xchg, 0, 0x48, 0x91
	FORM1	xchg_rr, 0, xchg %rdx, %rcx
	FORM1	xchg_mem, 0, xchg %rax, M(%rbx)
	FORM1	xadd, 0, xadd %rcx, %rax
	FORM1	xadd_mem, 0, lock xadd %rcx, M(%rbx)
	FORM1	xadd8, 0, xadd %cl, %al
	FORM1	cmpxchg, 0, cmpxchg %rcx, %rdx
	FORM1	cmpxchg8, 0, cmpxchg %cl, %dl
	FORM	cmpxchg_mem
	mov	$0x1000, %edx
	test	$1, %cl
	cmovnz	%rdx, %rax
	INSN
	lock cmpxchg %rcx, M(%rbx)
	END	cmpxchg_mem
.macro CX name, flags, insn:vararg
	FORM	\name
	mov	%rbx, %rbp
	movq	$0x1111, M2(%rbp)
	movq	$0x2222, M2+8(%rbp)
	mov	$0x3333, %ebx
	INSN
	\insn
	mov	%rbp, %rbx
	END	\name, \flags
.endm
	CX	cmpxchg8b, 0, lock cmpxchg8b M2(%rbp)
	CX	cmpxchg16b, 0, lock cmpxchg16b M2(%rbp)

/* Conversions and widening moves. */
	FORM1	cbw, 0, cbtw
	FORM1	cwde, 0, cwtl
	FORM1	cdqe, 0, cltq
	FORM1	cwd, 0, cwtd
	FORM1	cdq, 0, cltd
	FORM1	cqo, 0, cqto
	FORM1	movzx8, 0, movzbl %cl, %eax
	FORM1	movzx16, 0, movzwl %cx, %eax
	FORM1	movsx8, 0, movsbq %cl, %rax
	FORM1	movsx16, 0, movswq %cx, %rax
	FORM1	movsxd, 0, movslq %ecx, %rax
	FORM1	movzx_mem, 0, movzbl M+1(%rbx), %eax

/* Flags. */
	FORM1	lahf, 0, lahf
	FORM1	sahf, 0, sahf
	FORM1	stc, 0, stc
	FORM1	clc, 0, clc
	FORM1	cmc, 0, cmc
	FORM1	cld, 0, cld
	FORM1	std, 0, std

/* Extensions that not every CPU has. */
	FORM1	popcnt, F_CPU, popcnt %rcx, %rax
	FORM1	tzcnt, F_CPU, tzcnt %rcx, %rax
	FORM1	lzcnt, F_CPU, lzcnt %rcx, %rax
	FORM1	crc32, F_CPU, crc32q %rcx, %rax
	FORM1	crc32_8, F_CPU, crc32b %cl, %eax
	FORM1	movbe, F_CPU, movbe M(%rbx), %rax
	FORM1	andn, F_CPU, andn %rcx, %rdx, %rax
	FORM1	shlx, F_CPU, shlx %rcx, %rdx, %rax
	FORM1	sarx, F_CPU, sarx %rcx, %rdx, %rax
	FORM1	rorx, F_CPU, rorx $7, %rcx, %rax
	FORM1	mulx, F_CPU, mulx %rcx, %r8, %rax
	FORM1	bextr, F_CPU, bextr %rcx, %rdx, %rax
	FORM1	blsr, F_CPU, blsr %rcx, %rax
	FORM1	pdep, F_CPU, pdep %rcx, %rdx, %rax
	FORM1	adcx, F_CPU, adcx %rcx, %rax
	FORM1	adox, F_CPU, adox %rcx, %rax

	.section .note.GNU-stack, "", @progbits
