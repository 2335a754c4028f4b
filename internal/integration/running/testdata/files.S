/* SPDX-License-Identifier: GPL-2.0-only */
/* Opens, reads and closes itself, a thousand times for each argument. */
	.globl	_start
_start:	imul	$1000, (%rsp), %r12	/* argc */
again:	mov	$2, %eax		/* open */
	lea	path(%rip), %rdi
	xor	%esi, %esi
	syscall
	mov	%eax, %r13d
	mov	%eax, %edi
	xor	%eax, %eax		/* read */
	lea	-256(%rsp), %rsi
	mov	$64, %edx
	syscall
	test	%rax, %rax
	jle	bad
	mov	%r13d, %edi
	mov	$3, %eax		/* close */
	syscall
	dec	%r12
	jnz	again
	xor	%edi, %edi
	jmp	exit
bad:	mov	$1, %edi
exit:	mov	$60, %eax
	syscall
path:	.asciz	"/bin/files"
	.section .note.GNU-stack, "", @progbits
