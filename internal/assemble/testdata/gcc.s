	.file "f.c"
	.text
	.p2align 4
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	pushq	%r13
	.cfi_def_cfa_offset 16
	.cfi_offset 13, -16
	movq	%rdx, %r13
	pushq	%r12
	.cfi_def_cfa_offset 24
	.cfi_offset 12, -24
	movq	%rdi, %r12
	pushq	%rbp
	.cfi_def_cfa_offset 32
	.cfi_offset 6, -32
	movl	%esi, %ebp
	pushq	%rbx
	.cfi_def_cfa_offset 40
	.cfi_offset 3, -40
	subq	$8, %rsp
	.cfi_def_cfa_offset 48
	testl	%esi, %esi
	jle	.L2
	movslq	%ebp, %rax
	movq	%rdi, %rdx
	movq	%r13, %rsi
	xorl	%ebx, %ebx
	leaq	(%rdi,%rax,8), %r9
	jmp	.L5
	.p2align 4,,10
	.p2align 3
.L20:
	leaq	(%rdi,%rdi,2), %rax
	addq	%rax, %rbx
.L4:
	lock addl	$1, count(%rip)
	addq	$8, %rdx
	addq	$1, %rsi
	cmpq	%r9, %rdx
	je	.L19
.L5:
	movsbq	(%rsi), %r8
	movq	(%rdx), %rdi
	movq	%r8, %rax
	cmpq	%r8, %rdi
	jg	.L20
	shrb	$2, %al
	movzbl	%al, %eax
	subq	%rax, %rbx
	jmp	.L4
	.p2align 4,,10
	.p2align 3
.L19:
	testq	%rbx, %rbx
	js	.L6
	cmpl	$1, %ebp
	je	.L21
.L16:
	cmpl	$2, %ebp
	je	.L22
.L11:
	leal	0(,%rbp,4), %edx
	movq	%r13, %rsi
	movq	%r12, %rdi
	movslq	%edx, %rdx
	call	memcpy@PLT
	movq	%rbx, %rax
	movl	%ebp, %ecx
	salq	%cl, %rax
.L1:
	addq	$8, %rsp
	.cfi_remember_state
	.cfi_def_cfa_offset 40
	popq	%rbx
	.cfi_def_cfa_offset 32
	popq	%rbp
	.cfi_def_cfa_offset 24
	popq	%r12
	.cfi_def_cfa_offset 16
	popq	%r13
	.cfi_def_cfa_offset 8
	ret
	.p2align 4,,10
	.p2align 3
.L2:
	.cfi_restore_state
	movl	$5, %eax
	je	.L1
	xorl	%ebx, %ebx
	jmp	.L11
	.p2align 4,,10
	.p2align 3
.L22:
	movabsq	$5270498306774157605, %rax
	movq	%rbx, %rcx
	addq	$8, %rsp
	.cfi_remember_state
	.cfi_def_cfa_offset 40
	imulq	%rbx
	sarq	$63, %rcx
	popq	%rbx
	.cfi_def_cfa_offset 32
	popq	%rbp
	.cfi_def_cfa_offset 24
	popq	%r12
	.cfi_def_cfa_offset 16
	popq	%r13
	.cfi_def_cfa_offset 8
	sarq	%rdx
	movq	%rdx, %rax
	subq	%rcx, %rax
	ret
	.p2align 4,,10
	.p2align 3
.L6:
	.cfi_restore_state
	movq	%rbx, %rdi
	call	slow@PLT
	cmpl	$1, %ebp
	jne	.L16
.L21:
	movslq	4+table(%rip), %rax
	addq	$8, %rsp
	.cfi_def_cfa_offset 40
	popq	%rbx
	.cfi_def_cfa_offset 32
	popq	%rbp
	.cfi_def_cfa_offset 24
	popq	%r12
	.cfi_def_cfa_offset 16
	popq	%r13
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.local	count
	.comm	count,4,4
	.ident "GCC"
	.section	.note.GNU-stack,"",@progbits
