/*
 * LLVM's disassembler, asked in the line protocol. make deps-test builds it. The
 * four functions are those of llvm-c/Disassembler.h and llvm-c/Target.h, which
 * are stable, so that the headers' package is not needed.
 */
#include <stdint.h>
#include "line.h"

extern void *LLVMCreateDisasmCPUFeatures(const char *triple, const char *cpu, const char *features, void *info,
					 int tag, void *operands, void *symbols);
extern size_t LLVMDisasmInstruction(void *d, uint8_t *bytes, uint64_t n, uint64_t pc, char *text, size_t size);
extern void LLVMInitializeX86TargetInfo(void);
extern void LLVMInitializeX86TargetMC(void);
extern void LLVMInitializeX86Disassembler(void);

static void *disassembler;

/* What the mnemonics say of control flow; the first that matches counts. */
static const struct {
	const char *name;
	int whole;
	const char *direct, *indirect;
} mnemonics[] = {
	{ "callw", 0, "call", "indirect-call" },
	{ "callq", 0, "call", "indirect-call" },
	{ "lcall", 0, "far", "far" }, { "ljmp", 0, "far", "far" },
	{ "lret", 0, "far", "far" }, { "iret", 0, "far", "far" }, { "uiret", 0, "far", "far" }, { "eret", 0, "far", "far" },
	{ "jmpabs", 1, "jmp", "jmp" },
	{ "jmp", 0, "jmp", "indirect-jmp" },
	{ "jcxz", 0, "loop", "loop" }, { "jecxz", 0, "loop", "loop" }, { "jrcxz", 0, "loop", "loop" },
	{ "loop", 0, "loop", "loop" },
	{ "j", 0, "jcc", "jcc" },
	{ "ret", 0, "ret", "ret" },
	{ "int", 1, "int", "int" }, { "int1", 1, "int", "int" }, { "int3", 1, "int", "int" },
	{ "syscall", 0, "syscall", "syscall" }, { "sysenter", 0, "syscall", "syscall" },
	{ "sysexit", 0, "syscall", "syscall" }, { "sysret", 0, "syscall", "syscall" },
	{ "ud0", 0, "undefined", "undefined" }, { "ud1", 0, "undefined", "undefined" }, { "ud2", 0, "undefined", "undefined" },
};

/* Prefixes that the printer puts before the mnemonic, with a blank or a tab. */
static const char *skip_prefixes(const char *s)
{
	static const char *const prefixes[] = { "lock", "rep", "repe", "repne", "repz", "repnz", "notrack",
		"data16", "addr32", "cs", "ds", "es", "fs", "gs", "ss", "xacquire", "xrelease" };
again:
	while (*s == '\t' || *s == ' ')
		s++;
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t n = strlen(prefixes[i]);
		if (!strncmp(s, prefixes[i], n) && (s[n] == '\t' || s[n] == ' ')) {
			s += n;
			goto again;
		}
	}
	return s;
}

static void classify(const char *text, struct answer *a)
{
	const char *s = skip_prefixes(text);
	size_t word = strcspn(s, "\t ");
	const char *operand = s + word + strspn(s + word, "\t ");
	int direct = *operand != '*' && *operand != '$';
	int branch = 0;

	a->class = "none";
	for (size_t i = 0; i < sizeof mnemonics / sizeof *mnemonics; i++) {
		size_t n = strlen(mnemonics[i].name);
		if (strncmp(s, mnemonics[i].name, n) || (mnemonics[i].whole && word != n))
			continue;
		a->class = direct ? mnemonics[i].direct : mnemonics[i].indirect;
		branch = strstr("call jmp jcc loop", a->class) != NULL;
		break;
	}
	if (direct && (branch || !strncmp(s, "xbegin", 6))) {
		a->has_target = 1;
		a->target = (long long)a->length + strtoll(operand, NULL, 0);
	}
}

static void decode(const unsigned char *bytes, unsigned n, struct answer *a)
{
	char text[256];
	uint8_t copy[16];

	memcpy(copy, bytes, n);
	a->length = LLVMDisasmInstruction(disassembler, copy, n, 0, text, sizeof text);
	if (a->length) {
		classify(text, a);
		snprintf(a->text, sizeof a->text, "%s", text);
	}
}

static unsigned plain(const unsigned char *bytes, unsigned n)
{
	char text[256];
	uint8_t copy[16];

	memcpy(copy, bytes, n);
	return LLVMDisasmInstruction(disassembler, copy, n, 0, text, sizeof text);
}

int main(int argc, char **argv)
{
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86Disassembler();
	disassembler = LLVMCreateDisasmCPUFeatures("x86_64-unknown-linux-gnu", "", "", NULL, 0, NULL, NULL);
	if (!disassembler) {
		fputs("llvm: no disassembler for x86_64\n", stderr);
		return 1;
	}
	return serve(argc, argv);
}
