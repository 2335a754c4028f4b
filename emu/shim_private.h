/* What the C files share and Go does not see. */
#ifndef KPL_SHIM_PRIVATE_H
#define KPL_SHIM_PRIVATE_H

#include <string.h>
#include <unicorn/unicorn.h>

#include "shim.h"

#define PAGE 4096ull

/* The physical address of a guest address: its low 48 bits, which still tell
 * canonical addresses apart. The engine refuses to fetch above 2^52. */
#define ALIAS(va) ((va) & 0xffffffffffffull)

static inline kpl_region *region_at(kpl_machine *m, uint64_t va)
{
	for (int i = 0; i < m->nregions; i++)
		if (va - m->regions[i].start < m->regions[i].end - m->regions[i].start)
			return &m->regions[i];
	return NULL;
}

/* The place of a block in the table of counts: 8 bytes of text have one, and text that follows has the
 * next, since a function's blocks run one after another. The high bits of the address decide, too: text
 * that the machine adds begins at a page. */
static inline kpl_counts *counts_at(kpl_machine *m, uint64_t pc)
{
	return &m->counts[(pc >> 3 ^ pc >> 17) % KPL_COUNTS];
}

static inline int is_count(const kpl_count *k, uint64_t pc, uint32_t size)
{
	return k->pc == pc && k->size == size;
}

/* The count of a block, NULL where the table has none. */
static inline kpl_count *count_at(kpl_machine *m, uint64_t pc, uint32_t size)
{
	kpl_counts *s = counts_at(m, pc);

	if (__builtin_expect(is_count(&s->way[0], pc, size), 1))
		return &s->way[0];
	for (int i = 1; i < KPL_WAYS; i++)
		if (is_count(&s->way[i], pc, size))
			return &s->way[i];
	return NULL;
}

/* The run ends before its next block once that is too much work, or its time is up. */
static inline void add_work(kpl_machine *m, uint64_t n)
{
	m->work += n;
	if (__builtin_expect(m->work > m->allowance || __atomic_load_n(&m->expired, __ATOMIC_RELAXED), 0))
		m->stop_at = 0;
}


int kpl_fill(kpl_cpu *c, uint64_t va, int need, kpl_place *p);
/* The CPU that a hook is called for. Those of a booted machine share an engine. */
static inline kpl_cpu *running(void *user)
{
	kpl_cpu *c = user;
	return c->m->nram ? c->m->cur : c;
}

enum { KPL_DUE_NOTHING, KPL_DUE_STOP, KPL_DUE_INTERRUPT };
int kpl_due(kpl_cpu *c, uint64_t ip);
int kpl_syscall(kpl_cpu *c);
enum { KPL_USER_CS = 0x33, KPL_USER_DS = 0x2b, KPL_KERNEL_CS = 0x10, KPL_KERNEL_DS = 0x18 };
#define KPL_USER_END (1ull << 47)
void kpl_set_eip(kpl_cpu *c, uint64_t ip);
uint64_t kpl_tsc(kpl_machine *m);
int kpl_apic_next(const kpl_apic *a);
void kpl_apic_take(kpl_apic *a, int vector);
void kpl_apic_raise(kpl_apic *a, int vector);
void kpl_apic_send(kpl_cpu *c, uint64_t icr);
void kpl_apic_deadline(kpl_cpu *c, uint64_t tsc);
uint32_t kpl_apic_read(kpl_cpu *c, uint32_t reg);
void kpl_apic_write(kpl_cpu *c, uint32_t reg, uint32_t v);
uint32_t kpl_port_in(kpl_cpu *c, uint32_t port, int size);
int kpl_port_out(kpl_cpu *c, uint32_t port, int size, uint32_t value);
/* Guest code, byte by byte. */
struct text {
	uint64_t va;
	const uint8_t *b, *end; /* of its page */
};

static inline int next_byte(kpl_machine *m, struct text *t, uint8_t *b)
{
	kpl_place p;

	if (t->b == t->end) {
		if (!kpl_at(m, t->va, &p) || !(p.perm & KPL_X))
			return 0;
		t->b = p.host;
		t->end = p.page_host + PAGE;
	}
	*b = *t->b++;
	t->va++;
	return 1;
}

void kpl_add_count(kpl_machine *m, const kpl_count *k);
void kpl_free_counts(kpl_machine *m);
/* What Go may overwrite by starting a run on this engine from within a hook. */
struct level {
	int reason, in_callout;
	const kpl_machine *here;
	void *rescue;
};

struct level kpl_enter_go(kpl_cpu *c, int in_callout);
void kpl_leave_go(kpl_cpu *c, const struct level *l);
/* Where an engine has the window (shim_window.c). */
#define KPL_WINDOW (1ull << 48)

/* A page of a booted kernel with watched data, or the page before. pa is its physical address in the
 * TLB's last entry, next the next page in its chain. */
struct kpl_page {
	uint64_t va, pa;
	int next;
};

enum { KPL_CHAINS = 256 };
struct kpl_window {
	struct kpl_page *pages; /* by va */
	int npages;
	int chains[KPL_CHAINS]; /* the pages that the TLB may have, by pa */
};

int kpl_window_list(struct kpl_window *l, const kpl_watch *w, int n);
int kpl_window_put(kpl_cpu *c, struct kpl_window *l, uint64_t va, uint64_t pa);
int kpl_window_address(struct kpl_window *l, uint64_t *at);
int kpl_window_map(kpl_cpu *c);
int kpl_watch_page(kpl_cpu *c, uint64_t va, uint64_t pa);
void kpl_watch_note(kpl_machine *m, uint64_t at, uint64_t n, int write);
void kpl_watch_again(kpl_cpu *c);
/* Kinds of accesses, as machine.WatchRead and the others. */
enum { KPL_WATCH_READ = 1, KPL_WATCH_WRITE = 2, KPL_WATCH_EXEC = 4 };
enum { KPL_DR6_BS = 1 << 14 }; /* a single step */
enum { KPL_FLAG_RF = 0x10000 };
int kpl_debug_watches(const kpl_cpu *c, kpl_watch *to);
int kpl_debug_move(kpl_cpu *c, uint64_t at, int write, int n, int general);
void kpl_debug_note(kpl_cpu *c, uint32_t bits);
void kpl_debug_trap(kpl_cpu *c, uint64_t ip);
uint64_t kpl_resume_flag(kpl_cpu *c, uint64_t ip, uint64_t flags);
int kpl_watch_executed(kpl_machine *m, uint64_t ip);
int kpl_watch_repeats(kpl_machine *m, uint64_t ip);
extern int kpl_general[16];
void kpl_view_fill(kpl_cpu *c, kpl_place *p, int need, uint64_t *paddr);
void kpl_view_merge(kpl_machine *m, uint64_t page);
void kpl_view_free(kpl_machine *m);
void kpl_refuse(kpl_cpu *c, uint64_t at, int vector);
void kpl_do_own(kpl_cpu *c, uint64_t at);
void kpl_add_own(kpl_cpu *c, uint64_t at, void (*what)(kpl_cpu *, uint64_t));
int kpl_block_begins(kpl_cpu *c, uint64_t pc);
void kpl_console_put(kpl_machine *m, uint8_t b);
void kpl_change_regs(kpl_cpu *c, const kpl_regs *r, const kpl_regs *old, int rip);
uc_err kpl_add_hooks(kpl_cpu *c);
void *kpl_pause_rescue(void);
void kpl_go_on_rescue(void *was);
void kpl_resume_rescue(kpl_cpu *c, void *was);

#endif
