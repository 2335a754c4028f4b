/* What the C files share and Go does not see. */
#ifndef KPL_SHIM_PRIVATE_H
#define KPL_SHIM_PRIVATE_H

#include <string.h>
#include <unicorn/unicorn.h>

#include "shim.h"

#define PAGE 4096ull

/* The engine refuses to fetch above 2^52, so what it takes for physical
 * addresses are the low 48 bits of the canonical ones: still distinct. */
#define ALIAS(va) ((va) & 0xffffffffffffull)

static inline kpl_region *region_at(kpl_machine *m, uint64_t va)
{
	for (int i = 0; i < m->nregions; i++)
		if (va - m->regions[i].start < m->regions[i].end - m->regions[i].start)
			return &m->regions[i];
	return NULL;
}

static inline kpl_count *count_at(kpl_machine *m, uint64_t pc)
{
	return &m->counts[(pc ^ pc >> 12) % KPL_COUNTS];
}

void kpl_save_page(kpl_machine *m, kpl_region *r, uint64_t page);
void kpl_console_put(kpl_machine *m, uint8_t b);
void kpl_change_regs(kpl_cpu *c, const kpl_regs *r, const kpl_regs *old, int rip);
uc_err kpl_add_hooks(kpl_cpu *c);

#endif
