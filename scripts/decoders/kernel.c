/*
 * The kernel's own decoder, built from linux-source, asked in the line protocol; its
 * lengths only. make decoder-kernel builds it.
 */
#define __always_unused __attribute__((unused))
#define EXPORT_SYMBOL(name)
#define unlikely(x) (x)
#include "lib/inat.c"
#include "lib/insn.c"
#include "line.h"

static void decode(const unsigned char *bytes, unsigned n, struct answer *a)
{
	struct insn insn;

	if (insn_decode(&insn, bytes, n, INSN_MODE_64) < 0)
		return;
	a->length = insn.length;
	a->class = "?";
}

static unsigned plain(const unsigned char *bytes, unsigned n)
{
	struct insn insn;

	return insn_decode(&insn, bytes, n, INSN_MODE_64) < 0 ? 0 : insn.length;
}

int main(int argc, char **argv)
{
	return serve(argc, argv);
}
