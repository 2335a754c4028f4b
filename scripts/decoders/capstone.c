/* Capstone, asked in the line protocol; its lengths and texts. make deps-test builds it. */
#include <capstone/capstone.h>
#include "line.h"

static csh handle;
static cs_insn *insn;

static void decode(const unsigned char *bytes, unsigned n, struct answer *a)
{
	const uint8_t *code = bytes;
	size_t left = n;
	uint64_t at = 0;

	if (!cs_disasm_iter(handle, &code, &left, &at, insn))
		return;
	a->length = insn->size;
	a->class = "?";
	snprintf(a->text, sizeof a->text, "%s %s", insn->mnemonic, insn->op_str);
}

static unsigned plain(const unsigned char *bytes, unsigned n)
{
	const uint8_t *code = bytes;
	size_t left = n;
	uint64_t at = 0;

	return cs_disasm_iter(handle, &code, &left, &at, insn) ? insn->size : 0;
}

int main(int argc, char **argv)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return 1;
	cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	insn = cs_malloc(handle);
	return serve(argc, argv);
}
