	.file "f.c"
	.text
	.local	count
	.comm	count,4,4
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register 6
	subq	$48, %rsp
	movq	%rdi, -24(%rbp)
	movl	%esi, -28(%rbp)
	movq	%rdx, -40(%rbp)
	movq	$0, -8(%rbp)
	movl	$0, -12(%rbp)
	jmp	.L2
.L5:
	movl	-12(%rbp), %eax
	cltq
	leaq	0(,%rax,8), %rdx
	movq	-24(%rbp), %rax
	addq	%rdx, %rax
	movq	(%rax), %rdx
	movl	-12(%rbp), %eax
	movslq	%eax, %rcx
	movq	-40(%rbp), %rax
	addq	%rcx, %rax
	movzbl	(%rax), %eax
	movsbq	%al, %rax
	cmpq	%rax, %rdx
	jle	.L3
	movl	-12(%rbp), %eax
	cltq
	leaq	0(,%rax,8), %rdx
	movq	-24(%rbp), %rax
	addq	%rdx, %rax
	movq	(%rax), %rdx
	movq	%rdx, %rax
	addq	%rax, %rax
	addq	%rdx, %rax
	addq	%rax, -8(%rbp)
	jmp	.L4
.L3:
	movl	-12(%rbp), %eax
	movslq	%eax, %rdx
	movq	-40(%rbp), %rax
	addq	%rdx, %rax
	movzbl	(%rax), %eax
	shrb	$2, %al
	movzbl	%al, %eax
	subq	%rax, -8(%rbp)
.L4:
	lock addl	$1, count(%rip)
	addl	$1, -12(%rbp)
.L2:
	movl	-12(%rbp), %eax
	cmpl	-28(%rbp), %eax
	jl	.L5
	cmpq	$0, -8(%rbp)
	jns	.L6
	movq	-8(%rbp), %rax
	movq	%rax, %rdi
	call	slow@PLT
.L6:
	cmpl	$2, -28(%rbp)
	je	.L7
	cmpl	$2, -28(%rbp)
	jg	.L8
	cmpl	$0, -28(%rbp)
	je	.L9
	cmpl	$1, -28(%rbp)
	je	.L10
	jmp	.L8
.L9:
	movl	$5, %eax
	jmp	.L11
.L10:
	movl	-28(%rbp), %eax
	cltq
	leaq	0(,%rax,4), %rdx
	leaq	table(%rip), %rax
	movl	(%rdx,%rax), %eax
	cltq
	jmp	.L11
.L7:
	movq	-8(%rbp), %rcx
	movabsq	$5270498306774157605, %rdx
	movq	%rcx, %rax
	imulq	%rdx
	movq	%rdx, %rax
	sarq	%rax
	sarq	$63, %rcx
	movq	%rcx, %rdx
	subq	%rdx, %rax
	jmp	.L11
.L8:
	movl	-28(%rbp), %eax
	sall	$2, %eax
	movslq	%eax, %rdx
	movq	-40(%rbp), %rcx
	movq	-24(%rbp), %rax
	movq	%rcx, %rsi
	movq	%rax, %rdi
	call	memcpy@PLT
	movl	-28(%rbp), %eax
	movq	-8(%rbp), %rdx
	movl	%eax, %ecx
	salq	%cl, %rdx
	movq	%rdx, %rax
.L11:
	leave
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.ident "GCC"
	.section	.note.GNU-stack,"",@progbits
