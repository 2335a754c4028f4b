/* Zydis, asked in the line protocol. make deps-test builds it. */
#include <Zydis/Zydis.h>
#include "line.h"

static ZydisDecoder decoder;
static ZydisFormatter formatter;

static const char *class_of(const ZydisDecodedInstruction *i)
{
	int relative = i->raw.imm[0].is_relative;

	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
		return "none";
	case ZYDIS_MNEMONIC_CALL:
		if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return "far";
		return relative ? "call" : "indirect-call";
	case ZYDIS_MNEMONIC_JMP:
		if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			return "far";
		return relative ? "jmp" : "indirect-jmp";
	case ZYDIS_MNEMONIC_RET:
		return i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || i->opcode >= 0xCA ? "far" : "ret";
	case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD: case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
		return "far";
	case ZYDIS_MNEMONIC_LOOP: case ZYDIS_MNEMONIC_LOOPE: case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JCXZ: case ZYDIS_MNEMONIC_JECXZ: case ZYDIS_MNEMONIC_JRCXZ:
		return "loop";
	case ZYDIS_MNEMONIC_INT: case ZYDIS_MNEMONIC_INT1: case ZYDIS_MNEMONIC_INT3: case ZYDIS_MNEMONIC_INTO:
		return "int";
	case ZYDIS_MNEMONIC_SYSCALL: case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT: case ZYDIS_MNEMONIC_SYSRET:
		return "syscall";
	case ZYDIS_MNEMONIC_UD0: case ZYDIS_MNEMONIC_UD1: case ZYDIS_MNEMONIC_UD2:
		return "undefined";
	default:
		return i->meta.category == ZYDIS_CATEGORY_COND_BR && relative ? "jcc" : "none";
	}
}

static void decode(const unsigned char *bytes, unsigned n, struct answer *a)
{
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

	if (want_text) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &i, operands)))
			return;
		ZydisFormatterFormatInstruction(&formatter, &i, operands, i.operand_count_visible,
						a->text, sizeof a->text, 0, ZYAN_NULL);
	} else if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, n, &i))) {
		return;
	}
	a->length = i.length;
	a->class = class_of(&i);
	if (i.raw.imm[0].is_relative) {
		a->has_target = 1;
		a->target = i.length + i.raw.imm[0].value.s;
	}
}

static unsigned plain(const unsigned char *bytes, unsigned n)
{
	ZydisDecodedInstruction i;
	struct answer a = { 0 };

	if (want_text) {
		decode(bytes, n, &a);
		return a.length;
	}
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, n, &i)) ? i.length : 0;
}

int main(int argc, char **argv)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE);
	if (argc == 3 && !strcmp(argv[1], "speed"))
		ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	return serve(argc, argv);
}
