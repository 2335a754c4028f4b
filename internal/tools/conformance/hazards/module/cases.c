// SPDX-License-Identifier: GPL-2.0-only
/*
 * The instructions. Each function returns what tells whether its instruction did what a
 * processor does; it is left as it was entered whatever the instruction did to the stack.
 */
#include <linux/irqflags.h>
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/fpu/api.h>
#include <asm/segment.h>

#include "cases.h"

/* FUNCTION defines one; the label .Lat_NAME is where the probe is put. */
#define FUNCTION(name, code)						\
	asm(".pushsection .text\n"					\
	    ".globl hz_" #name ", hz_" #name "_at\n"			\
	    ".type hz_" #name ", @function\n"				\
	    "hz_" #name ":\n" code "\n"					\
	    ".size hz_" #name ", . - hz_" #name "\n"			\
	    "hz_" #name "_at = .Lat_" #name "\n"			\
	    ".popsection\n");						\
	extern unsigned long hz_##name(void);				\
	extern kprobe_opcode_t hz_##name##_at[]

/* HALT: an interrupt wakes the processor. */
FUNCTION(halt, "sti\n .Lat_halt: hlt\n xor %eax, %eax\n" ASM_RET);
FUNCTION(mwait, "xor %ecx, %ecx; xor %edx, %edx; lea -64(%rsp), %rax; .byte 0x0f, 0x01, 0xc8\n" /* monitor */
		"xor %eax, %eax; sti\n .Lat_mwait: .byte 0x0f, 0x01, 0xc9\n xor %eax, %eax\n" ASM_RET);

/* VEX: vpsubd is taken for cli, vzeroupper for ja to the next instruction. */
FUNCTION(vex_cli, ".Lat_vex_cli: vpsubd %xmm1, %xmm0, %xmm0\n pushf; pop %rax; shr $9, %eax; and $1, %eax\n" ASM_RET);
FUNCTION(vex_ja, "vpcmpeqd %ymm0, %ymm0, %ymm0\n .Lat_vex_ja: vzeroupper\n"
	   "vextracti128 $1, %ymm0, %xmm0; vmovd %xmm0, %eax; and $1, %eax\n" ASM_RET);

/* RET_IMM, FAR_RET: how many bytes the stack pointer is too low after the return. */
FUNCTION(ret_imm_in, ".Lat_ret_imm_in: ret $16; int3\n");
FUNCTION(ret_imm, ".Lat_ret_imm: mov %rsp, %rdx; sub $16, %rsp; call hz_ret_imm_in\n"
		  "mov %rdx, %rax; sub %rsp, %rax; mov %rdx, %rsp\n" ASM_RET);
FUNCTION(far_ret_in, ".Lat_far_ret_in: lretq; int3\n");
FUNCTION(far_ret, ".Lat_far_ret: mov %rsp, %rdx; push $0x10; call hz_far_ret_in\n"
		  "mov %rdx, %rax; sub %rsp, %rax; mov %rdx, %rsp\n" ASM_RET);

/* LOOP_COUNT: 1 when it branches; LOOP_ECX: the upper half of rcx. */
FUNCTION(loop_count, "mov $1, %ecx\n .Lat_loop_count: loop 1f\n xor %eax, %eax\n" ASM_RET
		     "1: mov $1, %eax\n" ASM_RET);
FUNCTION(loop_ecx, "movabs $0x700000002, %rcx\n .Lat_loop_ecx: .byte 0x67, 0xe2, 0x00\n mov %rcx, %rax; shr $32, %rax\n" ASM_RET);

/* FLAGS_16: how many bytes are moved. */
FUNCTION(pushfw, "mov %rsp, %rdx\n .Lat_pushfw: pushfw\n mov %rdx, %rax; sub %rsp, %rax; mov %rdx, %rsp\n" ASM_RET);
FUNCTION(popfw, "mov %rsp, %rdx; pushf; mov %rsp, %rsi\n .Lat_popfw: popfw\n mov %rsp, %rax; sub %rsi, %rax; mov %rdx, %rsp\n" ASM_RET);

/* LAST_INT3: a nop of 14 bytes. */
FUNCTION(last_int3, ".Lat_last_int3: .byte 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n xor %eax, %eax\n" ASM_RET);

/* OTHER_FAULT: a division by zero that is caught returns 1. */
FUNCTION(other_fault, "xor %edx, %edx; xor %ecx, %ecx; mov $1, %eax\n .Lat_other_fault: div %ecx\n xor %eax, %eax\n" ASM_RET
		      "1: mov $1, %eax\n" ASM_RET _ASM_EXTABLE(.Lat_other_fault, 1b));

/* No hazard: the frame by itself does nothing. */
FUNCTION(nothing, "mov $1, %ecx\n .Lat_nothing: mov $5, %eax\n" ASM_RET);

static unsigned long with_fpu(unsigned long (*hz)(void))
{
	unsigned long result;

	kernel_fpu_begin();
	result = hz();
	local_irq_enable();
	kernel_fpu_end();
	return result;
}

static unsigned long call_vex_cli(void)
{
	return with_fpu(hz_vex_cli);
}

static unsigned long call_vex_ja(void)
{
	return with_fpu(hz_vex_ja);
}

#define CASE(name) { #name, hz_##name##_at, hz_##name }
const struct hazard_case hazard_cases[] = {
	CASE(nothing),
	CASE(halt),
	CASE(mwait),
	{ "vex_cli", hz_vex_cli_at, call_vex_cli },
	{ "vex_ja", hz_vex_ja_at, call_vex_ja },
	{ "ret_imm", hz_ret_imm_in_at, hz_ret_imm },
	{ "far_ret", hz_far_ret_in_at, hz_far_ret },
	CASE(loop_count),
	CASE(loop_ecx),
	CASE(pushfw),
	CASE(popfw),
	CASE(last_int3),
	CASE(other_fault),
	{},
};
