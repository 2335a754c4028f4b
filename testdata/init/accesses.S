/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single instructions that access memory, for breakpoints.c: what is at rdi, and at rsi where
 * there are two. Each changes what it likes but rbx, rbp and r12 to r15; r11 has the stack.
 */

	.text

/* ACCESS name, instruction: a function, and its row in the table: name, where the instruction
 * begins and where it ends. */
	.macro ACCESS name:req, insn:req
	.text
	.balign 16
access_\name:
	mov $3, %ecx
	mov $0x1122334455667788, %rax
	movq %rax, %xmm0
	mov %rsp, %r11
1:	\insn
2:	mov %r11, %rsp
	cld
	ret
	.section .rodata.str1.1, "aMS", @progbits, 1
3:	.asciz "\name"
	.section .rodata.accesses, "a", @progbits
	.quad 3b, access_\name, 1b, 2b
	.endm

	.section .rodata.accesses, "a", @progbits
	.balign 8
	.globl accesses
accesses:
	ACCESS load1, "movb (%rdi), %al"
	ACCESS load2, "movw (%rdi), %ax"
	ACCESS load4, "movl (%rdi), %eax"
	ACCESS load8, "movq (%rdi), %rax"
	ACCESS load16, "movups (%rdi), %xmm1"
	ACCESS store1, "movb %al, (%rdi)"
	ACCESS store2, "movw %ax, (%rdi)"
	ACCESS store4, "movl %eax, (%rdi)"
	ACCESS store8, "movq %rax, (%rdi)"
	ACCESS store16, "movups %xmm0, (%rdi)"
	ACCESS extend, "movzbl 3(%rdi), %eax"
	ACCESS test, "testl $1, (%rdi)"
	ACCESS compare, "cmpq %rax, (%rdi)"
	ACCESS inc, "incl (%rdi)"
	ACCESS add, "addq %rax, (%rdi)"
	ACCESS lock_xadd, "lock xaddq %rax, (%rdi)"
	ACCESS xchg, "xchgw %ax, (%rdi)"
	ACCESS cmpxchg, "cmpxchgq %rdx, (%rdi)"
	ACCESS lock_cmpxchg, "lock cmpxchgl %edx, (%rdi)"
	ACCESS lock_bts, "lock btsl $5, (%rdi)"
	ACCESS bit_far, "btl $77, (%rdi)"
	ACCESS bit_by_register, "btq %rcx, (%rdi)"
	ACCESS cmov_not, "cmovnol (%rdi), %eax"
	ACCESS setcc, "setc (%rdi)"
	ACCESS multiply, "mulb (%rdi)"
	ACCESS lea, "lea (%rdi), %rax"
	ACCESS nop, "nopl (%rdi)"
	ACCESS prefetch, "prefetcht0 (%rdi)"
	ACCESS pushes, "xchg %rdi, %rsp; push %rax"
	ACCESS pops, "xchg %rdi, %rsp; pop %rax"
	ACCESS calls, "xchg %rdi, %rsp; call 4f; 4: nop"
	ACCESS movsb, "movsb"
	ACCESS movsq, "movsq"
	ACCESS cmpsw, "cmpsw"
	ACCESS lodsl, "lodsl"
	ACCESS stosq, "stosq"
	ACCESS rep_movsb, "rep movsb"
	ACCESS rep_movsl, "rep movsl"
	ACCESS rep_stosb, "rep stosb"
	ACCESS rep_stosq, "rep stosq"
	ACCESS rep_lodsb, "rep lodsb"
	ACCESS backwards, "std; rep stosw"
	ACCESS repe_cmpsb, "repe cmpsb"
	ACCESS repne_scasb, "repne scasb"
	ACCESS rep_none, "xor %ecx, %ecx; rep stosb"
	ACCESS two, "movl (%rdi), %edx; movl %edx, (%rdi)"
	ACCESS loop, "4: incb (%rdi); loop 4b"
	.section .rodata.accesses, "a", @progbits
	.quad 0
	.text

/* void access(void *function, char *at, char *from) */
	.globl access
access:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	jmp *%rax

/* long try_load(char *at): -1 where it faults. */
	.globl try_load, try_load_insn, try_load_fails
try_load:
	xor %eax, %eax
try_load_insn:
	mov (%rdi), %al
	ret
try_load_fails:
	mov $-1, %rax
	ret

/* Where a handler of a signal returns to. */
	.globl signal_return
signal_return:
	mov $15, %eax			# rt_sigreturn
	syscall
	ud2
	.section .note.GNU-stack, "", @progbits
