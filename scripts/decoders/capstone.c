/* Capstone, asked in the line protocol; its lengths only. make deps-test builds it. */
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
}

int main(void)
{
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return 1;
	insn = cs_malloc(handle);
	return serve();
}
