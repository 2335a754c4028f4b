/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory functions in assembly: no fentry site, as in the kernel. */
	.text

.macro FUNC name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm
.macro END name
	.size	\name, . - \name
.endm

/* void *memcpy(void *dst, const void *src, size_t n) */
FUNC memcpy
	mov	%rdi, %rax
	mov	%rdx, %rcx
	shr	$3, %rcx
	and	$7, %edx
	rep movsq
	mov	%edx, %ecx
	rep movsb
	ret
	int3
END memcpy

/* void *memset(void *dst, int c, size_t n) */
FUNC memset
	mov	%rdi, %r9
	mov	%esi, %eax
	mov	%rdx, %rcx
	rep stosb
	mov	%r9, %rax
	ret
	int3
END memset

/* void *memmove(void *dst, const void *src, size_t n) */
FUNC memmove
	mov	%rdi, %rax
	mov	%rdx, %rcx
	mov	%rdi, %r8
	sub	%rsi, %r8
	cmp	%rdx, %r8
	jb	1f			/* dst lies inside src: go backwards */
	rep movsb
	ret
	int3
1:	lea	-1(%rdi,%rdx), %rdi
	lea	-1(%rsi,%rdx), %rsi
	std
	rep movsb
	cld
	ret
	int3
END memmove

/* What an fentry site calls until boot turns it into a no-op. */
FUNC __fentry__
	ret
	int3
END __fentry__

	.section .note.GNU-stack, "", @progbits
