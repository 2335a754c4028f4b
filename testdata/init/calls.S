/* SPDX-License-Identifier: GPL-2.0-only */
/* What calls.c cannot say in C. */

	.text

/* void signal_return(void): where a signal handler returns to. */
	.globl signal_return
	.type signal_return, @function
signal_return:
	mov $15, %eax			# rt_sigreturn
	syscall
	ud2
	.size signal_return, . - signal_return

/*
 * long thread(long flags, void *stack_end, int *tid, void (*run)(void)): clone; the new
 * thread runs on its stack and ends. tid is cleared then, and its futex woken.
 */
	.globl thread
	.type thread, @function
thread:
	mov $56, %eax			# clone
	mov %rcx, %r9
	mov %rdx, %r10
	xor %edx, %edx
	xor %r8d, %r8d
	syscall
	test %rax, %rax
	jnz 1f
	xor %ebp, %ebp
	call *%r9
	mov $60, %eax			# exit
	xor %edi, %edi
	syscall
	ud2
1:	ret
	.size thread, . - thread

/*
 * long try_read(char *p), long try_write(char *p): the byte at p, or 0; -1 when the
 * handler of the fault has gone to try_failed.
 */
	.globl try_read, try_write, try_failed
	.type try_read, @function
try_read:
	movzbl (%rdi), %eax
	ret
	.size try_read, . - try_read
	.type try_write, @function
try_write:
	movb $'w', (%rdi)
	xor %eax, %eax
	ret
	.size try_write, . - try_write
	.type try_failed, @function
try_failed:
	mov $-1, %rax
	ret
	.size try_failed, . - try_failed

/* long vfork_exit(int status): vfork; the child, on its parent's stack, ends at once. */
	.globl vfork_exit
	.type vfork_exit, @function
vfork_exit:
	mov $58, %eax			# vfork
	syscall
	test %rax, %rax
	jnz 1f
	mov $231, %eax			# exit_group
	syscall
	ud2
1:	ret
	.size vfork_exit, . - vfork_exit
	.section .note.GNU-stack, "", @progbits
