/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's own functions do with a hit whose handler is guest code, as
 * guest code. internal/guestfast places these functions into the memory of any
 * kernel, and its doc.go has the protocol that they keep.
 *
 * A section is a function, named as the kernel's symbols name it. Undefined
 * symbols are what the package fills in:
 *
 *	running, task, arg	the words of the CPU's page, from gs
 *	detours, sites		tables of 16,384 pairs of key and record
 *	heads			the tasks' newest instances
 *	trampoline		the return trampoline
 *	*_out			call-outs: the same function, in Go
 *
 * rec is a record, the first argument of a pre handler; ri is an instance.
 */
	/* words of a record */
	.set	REC_CODE, 0	/* the pre handler */
	.set	REC_ADDR, 8	/* the probed address */
	.set	REC_FREE, 16	/* of a return probe: the first free ri */
	.set	REC_RETURN, 24	/* its handler */
	.set	REC_ENTRY, 32	/* its entry handler */
	.set	REC_POST, 40	/* the post handler */
	.set	REC_SIZE, 64

	/* words of an instance */
	.set	RI_RET, 0	/* the return address */
	.set	RI_FRAME, 8	/* the stack slot that held it; odd where an older ri shares it */
	.set	RI_REC, 16
	.set	RI_NEXT, 24	/* the next free one, or the task's next */

	/* struct pt_regs */
	.set	ORIG_AX, 0x78
	.set	IP, 0x80
	.set	CS, 0x88
	.set	FLAGS, 0x90
	.set	SP, 0x98
	.set	SS, 0xa0
	.set	ABOVE, 0xa8

	.set	KERNEL_CS, 0x10
	.set	PAIRS, 0x3fff0	/* the bits of a key, times 16, that pick a pair */

	.macro	function name
	.section ".text.\name", "ax", @progbits
	.endm

/*
 * take: the running word becomes \new and the jump is not taken, if \zero is 0
 * and no handler runs on this CPU. It is one block with what precedes it, so
 * nobody runs between the look and the taking. Uses rcx.
 */
	.macro	take zero, new, else
	movq	%gs:running, %rcx
	orq	%rcx, \zero
	cmovzq	\new, %rcx
	movq	%rcx, %gs:running
	jne	\else
	.endm

/* optimized_callback(op, regs): op, a small number, is the key. */
	.macro	detour ss
	movl	%edi, %eax
	shll	$4, %eax
	andl	$PAIRS, %eax
	movabsq	$detours, %rcx
	addq	%rcx, %rax
	movq	(%rax), %rdx
	xorq	%rdi, %rdx
	take	%rdx, 8(%rax), optimized_out
	movq	%rcx, %rdi
	movq	REC_ADDR(%rdi), %rax
	incq	%rax
	movq	%rax, IP(%rsi)
	movq	$KERNEL_CS, CS(%rsi)
	movq	$-1, ORIG_AX(%rsi)
	.if	\ss
	addq	$8, SP(%rsi)		/* ss was pushed before sp */
	.endif
	call	*REC_CODE(%rdi)
	movq	$0, %gs:running
	ret
	.endm

	function "optimized_callback.guest"
	detour	0
	function "optimized_callback.guest.ss"
	detour	1

/*
 * kprobe_ftrace_handler(regs): ip, one past the fentry site, is the key, and
 * where execution goes on unless the handler returns non-zero.
 */
	function "kprobe_ftrace_handler.guest"
	movq	%rdi, %rsi
	movq	IP(%rdi), %rdi
	movl	%edi, %eax
	andl	$PAIRS, %eax
	movabsq	$sites, %rdx
	addq	%rdx, %rax
	movq	(%rax), %rdx
	xorq	%rdi, %rdx
	take	%rdx, 8(%rax), 2f
	subq	$4, %rdi
	movq	%rdi, IP(%rsi)		/* one past the site's address */
	movq	%rcx, %rdi
	pushq	%rsi
	call	*REC_CODE(%rdi)
	popq	%rsi
	movq	%gs:running, %rdx
	movq	REC_ADDR(%rdx), %rdx
	addq	$5, %rdx
	testl	%eax, %eax
	cmovneq	IP(%rsi), %rdx		/* where the handler left it */
	movq	%rdx, IP(%rsi)
	movq	$0, %gs:running
	ret
2:	movq	%rsi, %rdi
	jmp	tracer_out

/*
 * aggr_pre_handler(rec, regs): the members' records follow the aggregate's own,
 * the newest first, and a zero. One that returns non-zero is the last to run.
 * opt_pre_handler runs all.
 */
	.macro	chain stops
	pushq	%rbx
	pushq	%rbp
	movq	%rsi, %rbp
	leaq	REC_SIZE(%rdi), %rbx
1:	movq	(%rbx), %rdi
	movq	%rbp, %rsi
	call	*REC_CODE(%rdi)
	addq	$8, %rbx
	.if	\stops
	testl	%eax, %eax
	jne	2f
	.endif
	cmpq	$0, (%rbx)
	jne	1b
2:	popq	%rbp
	popq	%rbx
	ret
	.endm

	function "aggr_pre_handler"
	chain	1
	function "opt_pre_handler"
	chain	0

/*
 * Take the first free ri of rec, in one block, so that no two CPUs take the
 * same. The one that ends the list is its own next.
 */
	.macro	take_instance
	movq	REC_FREE(%rdi), %rax
	movq	RI_NEXT(%rax), %rdx
	movq	%rdx, REC_FREE(%rdi)
	cmpq	%rdx, %rax
	je	kretprobe_missed
	.endm

/* pre_handler_kretprobe(rec, regs), the pre handler of a return probe. */
	function "pre_handler_kretprobe"
	take_instance
store:	movq	SP(%rsi), %rcx
	movq	(%rcx), %rdx
	movq	%rdx, RI_RET(%rax)
	xorl	%r8d, %r8d
	cmpq	$trampoline, %rdx
	sete	%r8b
	orq	%rcx, %r8
	movq	%r8, RI_FRAME(%rax)
	movq	$trampoline, (%rcx)
	movq	%gs:task, %rcx
	movabsq	$heads, %rdx
	leaq	(%rdx,%rcx,8), %rcx
	movq	(%rcx), %rdx
	movq	%rdx, RI_NEXT(%rax)
	movq	%rax, (%rcx)
	xorl	%eax, %eax
	ret

/* It with an entry handler, which says whether to follow the call. */
	function "pre_handler_kretprobe.entry_handler"
	take_instance
	pushq	%rax
	pushq	%rsi
	pushq	%rdi
	movq	REC_ENTRY(%rdi), %rdx
	movq	%rax, %rdi
	call	*%rdx			/* entry_handler(ri, regs) */
	popq	%rdi
	popq	%rsi
	popq	%rcx
	testl	%eax, %eax
	movq	%rcx, %rax
	je	store
	movq	REC_FREE(%rdi), %rdx
	movq	%rdx, RI_NEXT(%rcx)
	movq	%rcx, REC_FREE(%rdi)	/* ri is free again */
	xorl	%eax, %eax
	ret

/* No ri is free here. Go has one more for a second try, or counts the miss. */
	function "kretprobe_missed"
kretprobe_missed:
	movq	%rdi, %gs:arg
	pushq	%rdi
	pushq	%rsi
	movq	%rsi, %rdi
	call	missed_out
	popq	%rsi
	popq	%rdi
	xorl	%eax, %eax
	cmpq	$0, %gs:arg
	je	1f
	jmp	*REC_CODE(%rdi)
1:	ret

/* A handler of a return probe that has none. */
	function "kretprobe_no_handler"
	xorl	%eax, %eax
	ret

/*
 * A return: finds the ri, gets the frame ready, calls the handler, puts the
 * return address where the trampoline takes it from, and frees the ri. It is for
 * a task whose newest ri is of this frame and shares it with none; a task without
 * any has one of no frame.
 */
	.macro	returns rethook
	movq	%gs:task, %rax
	movabsq	$heads, %rcx
	leaq	(%rcx,%rax,8), %r8
	movq	(%r8), %rax		/* the newest ri */
	.if	\rethook
	leaq	ABOVE(%rdi), %rdx	/* the frame */
	.else
	leaq	SP(%rdi), %rdx
	.endif
	xorq	RI_FRAME(%rax), %rdx
	take	%rdx, %rax, return_out
	movq	$KERNEL_CS, CS(%rdi)
	movq	$-1, ORIG_AX(%rdi)
	.if	\rethook
	movq	RI_RET(%rax), %rdx
	movq	%rdx, IP(%rdi)
	addq	$16, SP(%rdi)		/* as the caller has it */
	.else
	movq	$trampoline, IP(%rdi)
	cli				/* until the trampoline's popfq */
	.endif
	movq	RI_REC(%rax), %rcx
	pushq	%rdi
	pushq	%r8
	pushq	%rax
	movq	%rdi, %rsi
	movq	%rax, %rdi
	call	*REC_RETURN(%rcx)	/* handler(ri, regs) */
	movq	$0, %gs:running
	popq	%rax
	popq	%r8
	popq	%rdi
	movq	RI_RET(%rax), %rdx
	.if	\rethook
	movq	%rdx, ABOVE(%rdi)	/* over the mark */
	movq	FLAGS(%rdi), %rcx
	movq	%rcx, SS(%rdi)		/* to return with */
	.else
	movq	%rdx, SP(%rdi)
	.endif
	movq	RI_NEXT(%rax), %rdx
	movq	%rdx, (%r8)
	movq	RI_REC(%rax), %rcx
	movq	REC_FREE(%rcx), %rdx
	movq	%rdx, RI_NEXT(%rax)
	movq	%rax, REC_FREE(%rcx)	/* ri is free again */
	ret
	.endm

	function "arch_rethook_trampoline_callback.guest"
	returns	1
	function "trampoline_handler.guest"
	returns	0

/*
 * The entries of the int3 gates. The CPU comes with interrupts off, the running
 * word set to rec, and the processor's part of a pt_regs on the stack: orig_ax to
 * ss.
 */
	.macro	enter
	.irp	r, rdi, rsi, rdx, rcx, rax, r8, r9, r10, r11, rbx, rbp, r12, r13, r14, r15
	pushq	%\r
	.endr
	.endm

/* Goes on with the frame's registers, flags, sp and ip. */
	.macro	leave_frame
	movq	SP(%rsp), %rax
	movq	IP(%rsp), %rcx
	movq	%rcx, -8(%rax)
	movq	FLAGS(%rsp), %rcx
	movq	%rcx, -16(%rax)
	subq	$16, %rax
	movq	%rax, SP(%rsp)
	.irp	r, r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi
	popq	%\r
	.endr
	movq	SP-ORIG_AX(%rsp), %rsp
	popfq
	ret
	.endm

/* The probe's int3: the pre handler, then Go, which gets its result. */
	function "asm_exc_int3"
	enter
	movq	%gs:running, %rdi
	movq	%rsp, %rsi
	call	*REC_CODE(%rdi)		/* pre_handler(rec, regs) */
	movl	%eax, %eax
	movq	%rax, %gs:arg
	movq	%rsp, %rdi
	call	int3_out
	leave_frame

/* The int3 that follows the copy: Go ends the step, then the post handler. */
	function "asm_exc_int3.post_handler"
	enter
	movq	%rsp, %rdi
	call	step_out
	movq	%gs:running, %rdi
	movq	%rsp, %rsi
	xorl	%edx, %edx
	call	*REC_POST(%rdi)		/* post_handler(rec, regs, 0) */
	movq	$0, %gs:running
	leave_frame
