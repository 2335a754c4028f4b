/* Zydis, asked in the line protocol. make deps-test builds it. */
#include <time.h>
#include <Zydis/Zydis.h>
#include "line.h"

static ZydisDecoder decoder;

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

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, n, &i)))
		return;
	a->length = i.length;
	a->class = class_of(&i);
	if (i.raw.imm[0].is_relative) {
		a->has_target = 1;
		a->target = i.length + i.raw.imm[0].value.s;
	}
}

static double one_pass(const unsigned char *from, const unsigned char *to)
{
	struct timespec begin, end;
	static volatile unsigned long sum;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (; from + 15 <= to; from += 15) {
		ZydisDecodedInstruction i;
		if (ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, from, 15, &i)))
			sum += i.length;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}

/*
 * With "speed PASSES": windows of 15 bytes on standard input, decoded so many
 * times over in minimal mode; prints nanoseconds per window, of the best pass
 * over each piece, so that what else the machine does counts little.
 */
static int speed(int passes)
{
	size_t size = 0, room = 1 << 20;
	unsigned char *code = malloc(room);
	ssize_t got;
	double total = 0;

	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	while (code && (got = read(0, code + size, room - size)) > 0) {
		size += got;
		if (size == room)
			code = realloc(code, room *= 2);
	}
	if (!code || size < 15)
		return 1;
	for (size_t piece = 0; piece + 15 <= size; piece += 15 * 10000) {
		size_t end = piece + 15 * 10000 < size ? piece + 15 * 10000 : size;
		double best = 1e30;

		for (int pass = 0; pass < passes; pass++) {
			double ns = one_pass(code + piece, code + end);
			if (ns < best)
				best = ns;
		}
		total += best;
	}
	printf("%.2f\n", total / (size / 15));
	return 0;
}

int main(int argc, char **argv)
{
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (argc == 3 && !strcmp(argv[1], "speed"))
		return speed(atoi(argv[2]));
	return serve();
}
