//go:build unicorn && cgo && linux && amd64

/* The table of counts: the instructions of each block that has run, which the block hook adds up. */

#include <sys/mman.h>

#include "shim_private.h"

static const size_t table = KPL_COUNTS * sizeof(kpl_counts);

/* Whole pages: each set is in one line of the host's cache, and a page that no block needs takes no memory. */
int kpl_new_counts(kpl_machine *m)
{
	void *p = mmap(NULL, table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -1;
	m->counts = p;
	return 0;
}

void kpl_free_counts(kpl_machine *m)
{
	if (m->counts)
		munmap(m->counts, table);
}

/* The oldest count of the set goes. The engine ends a block at the end of its page; one that
 * kpl_forget_counts would not find again is not kept. */
void kpl_add_count(kpl_machine *m, const kpl_count *k)
{
	kpl_counts *s = counts_at(m, k->pc);

	if (k->size > PAGE)
		return;
	memmove(&s->way[1], &s->way[0], sizeof *s - sizeof *s->way);
	s->way[0] = *k;
}

/* Text from addr to end was changed: forgets every block that has a part of it. */
void kpl_forget_counts(kpl_machine *m, uint64_t addr, uint64_t end)
{
	for (uint64_t pc = (addr - PAGE) & ~7ull; pc < end; pc += 8) {
		kpl_counts *s = counts_at(m, pc);
		for (int i = 0; i < KPL_WAYS; i++)
			if (s->way[i].pc < end && addr < s->way[i].pc + s->way[i].size)
				s->way[i].size = 0;
	}
}

void kpl_forget_all_counts(kpl_machine *m) { memset(m->counts, 0, table); }
