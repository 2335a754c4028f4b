	.file "f.c"
	.intel_syntax noprefix
	.text
	.p2align 4
	.globl	f
	.type	f, @function
f:
.LFB0:
	.cfi_startproc
	push	r13
	.cfi_def_cfa_offset 16
	.cfi_offset 13, -16
	mov	r13, rdx
	push	r12
	.cfi_def_cfa_offset 24
	.cfi_offset 12, -24
	mov	r12, rdi
	push	rbp
	.cfi_def_cfa_offset 32
	.cfi_offset 6, -32
	mov	ebp, esi
	push	rbx
	.cfi_def_cfa_offset 40
	.cfi_offset 3, -40
	sub	rsp, 8
	.cfi_def_cfa_offset 48
	test	esi, esi
	jle	.L2
	movsx	rax, ebp
	mov	rdx, rdi
	mov	rsi, r13
	xor	ebx, ebx
	lea	r9, [rdi+rax*8]
	jmp	.L5
	.p2align 4,,10
	.p2align 3
.L20:
	lea	rax, [rdi+rdi*2]
	add	rbx, rax
.L4:
	lock add	DWORD PTR count[rip], 1
	add	rdx, 8
	add	rsi, 1
	cmp	rdx, r9
	je	.L19
.L5:
	movsx	r8, BYTE PTR [rsi]
	mov	rdi, QWORD PTR [rdx]
	mov	rax, r8
	cmp	rdi, r8
	jg	.L20
	shr	al, 2
	movzx	eax, al
	sub	rbx, rax
	jmp	.L4
	.p2align 4,,10
	.p2align 3
.L19:
	test	rbx, rbx
	js	.L6
	cmp	ebp, 1
	je	.L21
.L16:
	cmp	ebp, 2
	je	.L22
.L11:
	lea	edx, 0[0+rbp*4]
	mov	rsi, r13
	mov	rdi, r12
	movsx	rdx, edx
	call	memcpy@PLT
	mov	rax, rbx
	mov	ecx, ebp
	sal	rax, cl
.L1:
	add	rsp, 8
	.cfi_remember_state
	.cfi_def_cfa_offset 40
	pop	rbx
	.cfi_def_cfa_offset 32
	pop	rbp
	.cfi_def_cfa_offset 24
	pop	r12
	.cfi_def_cfa_offset 16
	pop	r13
	.cfi_def_cfa_offset 8
	ret
	.p2align 4,,10
	.p2align 3
.L2:
	.cfi_restore_state
	mov	eax, 5
	je	.L1
	xor	ebx, ebx
	jmp	.L11
	.p2align 4,,10
	.p2align 3
.L22:
	movabs	rax, 5270498306774157605
	mov	rcx, rbx
	add	rsp, 8
	.cfi_remember_state
	.cfi_def_cfa_offset 40
	imul	rbx
	sar	rcx, 63
	pop	rbx
	.cfi_def_cfa_offset 32
	pop	rbp
	.cfi_def_cfa_offset 24
	pop	r12
	.cfi_def_cfa_offset 16
	pop	r13
	.cfi_def_cfa_offset 8
	sar	rdx
	mov	rax, rdx
	sub	rax, rcx
	ret
	.p2align 4,,10
	.p2align 3
.L6:
	.cfi_restore_state
	mov	rdi, rbx
	call	slow@PLT
	cmp	ebp, 1
	jne	.L16
.L21:
	movsx	rax, DWORD PTR table[rip+4]
	add	rsp, 8
	.cfi_def_cfa_offset 40
	pop	rbx
	.cfi_def_cfa_offset 32
	pop	rbp
	.cfi_def_cfa_offset 24
	pop	r12
	.cfi_def_cfa_offset 16
	pop	r13
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
.LFE0:
	.size	f, .-f
	.local	count
	.comm	count,4,4
	.ident "GCC"
	.section	.note.GNU-stack,"",@progbits
