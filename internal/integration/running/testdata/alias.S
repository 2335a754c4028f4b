/* SPDX-License-Identifier: GPL-2.0-only */
/* Has code at one address, and writes it at another: a thousand times it changes first one
 * byte of a function, then another, and calls it. Ends with 1 when the function is an old one. */
	.globl	_start
_start:	mov	$319, %eax		/* memfd_create */
	lea	name(%rip), %rdi
	xor	%esi, %esi
	syscall
	mov	%eax, %r12d
	mov	$77, %eax		/* ftruncate */
	mov	%r12d, %edi
	mov	$4096, %esi
	syscall
	mov	$3, %edx		/* readable and writable */
	call	map
	mov	%rax, %rbx
	mov	$5, %edx		/* readable and executable */
	call	map
	mov	%rax, %rbp
	movl	$0xc300b0, (%rbx)	/* mov $0, %al; ret */
	movl	$0xc300b4, 64(%rbx)	/* mov $0, %ah; ret */
	mov	$1000, %r13d
again:	mov	%r13b, 1(%rbx)
	call	*%rbp
	cmp	%r13b, %al
	jne	old
	lea	64(%rbp), %r14
	mov	%r13b, 65(%rbx)
	call	*%r14
	mov	%r13b, %cl
	cmp	%cl, %ah
	jne	old
	dec	%r13d
	jnz	again
	xor	%edi, %edi
	jmp	exit
old:	mov	$1, %edi
exit:	mov	$60, %eax
	syscall
map:	mov	$9, %eax		/* mmap */
	xor	%edi, %edi
	mov	$4096, %esi
	mov	$1, %r10d		/* shared */
	mov	%r12d, %r8d
	xor	%r9d, %r9d
	syscall
	ret
name:	.asciz	"code"
	.section .note.GNU-stack, "", @progbits
