/* SPDX-License-Identifier: GPL-2.0-only */
/* The way into a program, and its system calls. */

	.section .text.start, "ax"
	.globl _start
	.type _start, @function
_start:
	xor %ebp, %ebp
	mov %rsp, %rdi		# argc, the arguments, the environment
	and $-16, %rsp
	call start
	ud2
	.size _start, . - _start

/* long syscall(long number, long a, long b, long c, long d, long e, long f) */
	.text
	.globl syscall
	.type syscall, @function
syscall:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %r10
	mov %r9, %r8
	mov 8(%rsp), %r9
	syscall
	ret
	.size syscall, . - syscall

/* long host_call(long number, long a, long b, long c): a call that the host answers. */
	.globl host_call, host_call_site
	.type host_call, @function
host_call:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
host_call_site:
	syscall
	ret
	.size host_call, . - host_call
	.section .note.GNU-stack, "", @progbits
