// SPDX-License-Identifier: GPL-2.0-only
/*
 * Places that the kernel itself patches or traps at, each with its line in the
 * table that says so: static branches, static calls, BUG and WARN.
 */

struct static_key {
	int enabled;
	int pad;
	u64 type; /* bit 0: true by default */
};

struct static_key key_off = { 0, 0, 0 };
struct static_key key_on = { 1, 0, 1 };

/*
 * An entry says where the branch is, where it goes, and which key decides;
 * the key's lowest bit says that the branch is the likely side.
 */
#define JUMP_ENTRY(key, likely)                                        \
	".pushsection __jump_table, \"aw\"\n"                          \
	".balign 8\n"                                                  \
	".long 1b - ., %l[yes] - .\n"                                  \
	".quad " #key " + " #likely " - .\n"                           \
	".popsection\n"

#define NOP2 ".byte 0x66, 0x90\n"
#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#define JMP5 ".byte 0xe9; .long %l[yes] - 2f\n"
#define JMP2 ".byte 0xeb, %l[yes] - 2f\n"

#define STATIC_BRANCH(insn, key, likely)                               \
	asm goto("1: " insn "2:\n" JUMP_ENTRY(key, likely) : : : : yes)

/* Key off, branch unlikely: a 5-byte no-op; returns x + 1. */
noinline u64 label_off_nop5(u64 x)
{
	STATIC_BRANCH(NOP5, key_off, 0);
	return x + 1;
yes:
	return x + 2;
}

/* The same with 2 bytes. */
noinline u64 label_off_nop2(u64 x)
{
	STATIC_BRANCH(NOP2, key_off, 0);
	return x + 1;
yes:
	return x + 2;
}

/* Key on, branch unlikely: a 5-byte jump; returns x + 2. */
noinline u64 label_on_jmp5(u64 x)
{
	STATIC_BRANCH(JMP5, key_on, 0);
	return x + 1;
yes:
	return x + 2;
}

/* The same with 2 bytes. */
noinline u64 label_on_jmp2(u64 x)
{
	STATIC_BRANCH(JMP2, key_on, 0);
	return x + 1;
yes:
	return x + 2;
}

/* Key on, branch likely: the no-op is the true side; returns x + 1. */
noinline u64 label_likely_on(u64 x)
{
	STATIC_BRANCH(NOP5, key_on, 1);
	return x + 1;
yes:
	return x + 2;
}

/* Key off, branch likely: a jump to the false side; returns x + 2. */
noinline u64 label_likely_off(u64 x)
{
	STATIC_BRANCH(JMP5, key_off, 1);
	return x + 1;
yes:
	return x + 2;
}

/*
 * Static calls. A site is a call of a trampoline until boot writes the target
 * into it; the trampolines and keys are in tables.S. Flag 1 marks a tail call.
 */
#define STATIC_CALL_SITE(name, flags)                                  \
	".pushsection .static_call_sites, \"aw\"\n"                    \
	".balign 4\n"                                                  \
	".long 1b - ., __SCK__" #name " + " #flags " - .\n"            \
	".popsection\n"

#define STATIC_CALL(name, r, arg)                                      \
	asm volatile("1: call __SCT__" #name "\n" STATIC_CALL_SITE(name, 0) \
		     : "=a"(r), "+D"(arg)                              \
		     :                                                 \
		     : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc")

noinline u64 static_call_target(u64 x)
{
	return x * 3;
}

noinline u64 __static_call_return0(void)
{
	return 0;
}

/* To static_call_target; returns x * 3 + 1. */
noinline u64 static_call_test(u64 x)
{
	u64 r;

	STATIC_CALL(op, r, x);
	return r + 1;
}

/* Its key is NULL: the site becomes a no-op, and x + 1 comes back. */
noinline u64 static_call_null_test(u64 x)
{
	u64 keep = x, r = x;

	asm volatile("1: call __SCT__null\n" STATIC_CALL_SITE(null, 0)
		     : "+D"(r)
		     :
		     : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return keep + 1;
}

/* Its key is __static_call_return0: the site becomes xor %rax,%rax. */
noinline u64 static_call_return0_test(u64 x)
{
	u64 r;

	STATIC_CALL(ret0, r, x);
	return r + 1;
}

/*
 * BUG and WARN: a ud2 and an entry that tells file, line and flags, as
 * offsets from themselves. Flag 1 is a warning: the kernel goes on past it.
 */
#define BUG_ENTRY(line, flags)                                         \
	"1: ud2\n"                                                     \
	".pushsection __bug_table, \"aw\"\n"                           \
	".balign 4\n"                                                  \
	"2: .long 1b - .\n"                                            \
	".long bug_file - .\n"                                         \
	".word " #line ", " #flags "\n"                                \
	".popsection\n"

const char bug_file[] = "guest/patch.c";

/* BUG() when x is not 0. */
noinline u64 bug_on(u64 x)
{
	if (__builtin_expect(x != 0, 0))
		asm volatile(BUG_ENTRY(101, 0));
	return x + 1;
}

/* WARN() when x is not 0, and on it goes. */
noinline u64 warn_on(u64 x)
{
	if (__builtin_expect(x != 0, 0))
		asm volatile(BUG_ENTRY(102, 1));
	return x + 1;
}
