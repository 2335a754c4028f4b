//go:build unicorn && cgo && linux && amd64

/* Watchpoints: memory hooks record an instruction's accesses to watched bytes, and the code
 * hook of the next instruction reports them to Go. The hooks exist only while memory is
 * watched, because with them every access takes the engine's slow way. */

#include <stdlib.h>

#include "shim_private.h"

#include "_cgo_export.h"

enum { WATCH_MOST = 8 }; /* bytes of a watch */

/* A list of watches, and what the instruction that runs did to them. */
struct kpl_watches {
	int users;   /* the machine, and those who tell of its hits */
	int n, nexec, nhits;
	struct kpl_window window;
	kpl_watch_hit *hits;
	kpl_watch **hit; /* who has one */
	kpl_watch w[];
};

/* The first watch that begins after an address. */
static int first_after(const kpl_watches *l, uint64_t at)
{
	int low = 0, high = l->n;

	while (low < high) {
		int mid = (low + high) / 2;
		if (l->w[mid].addr > at)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* The value of a watch's bytes; an unmapped byte is 0. */
static uint64_t held(kpl_machine *m, const kpl_watch *w)
{
	uint64_t v = 0;
	kpl_place p;

	for (uint32_t i = 0; i < w->len; i++)
		if (kpl_at(m, w->addr + i, &p))
			v |= (uint64_t)*p.host << 8 * i;
	return v;
}

static void note(kpl_machine *m, kpl_watch *w, uint32_t kind)
{
	kpl_watches *l = m->watches;

	if (w->cpu != KPL_HOSTS) {
		if (w->cpu == m->cur->n)
			m->cur->debug_hits |= 1u << w->number;
		return;
	}
	if (!w->place) {
		l->hits[l->nhits] = (kpl_watch_hit){ .watch = w->number, .old = held(m, w) };
		l->hit[l->nhits++] = w;
		w->place = l->nhits;
	}
	l->hits[w->place - 1].kinds |= kind;
}

static void note_access(kpl_machine *m, uint64_t at, uint64_t n, uint32_t kind)
{
	kpl_watches *l = m->watches;

	for (int i = first_after(l, at > WATCH_MOST ? at - WATCH_MOST : 0); i < l->n; i++) {
		kpl_watch *w = &l->w[i];
		if (w->addr > at && w->addr - at >= n)
			return;
		if (w->kinds & kind && (w->addr - at < n || at - w->addr < w->len))
			note(m, w, kind);
	}
}

static void forget(kpl_watches *l)
{
	for (int i = 0; i < l->nhits; i++)
		l->hit[i]->place = 0;
	l->nhits = 0;
}

/* Whether there are hits to report to Go. Hits that are being reported do not count. */
static int hosts(const kpl_machine *m) { return m->watches && m->watches->nhits && !m->telling; }

/* Whether there are hits. */
static int pending(const kpl_cpu *c) { return hosts(c->m) || (c->debug_hits && !c->m->telling); }

/* Drops the hits of an instruction that did not complete, but not hits that are being reported. */
void kpl_watch_forget(kpl_cpu *c)
{
	if (c->m->telling)
		return;
	if (c->m->watches)
		forget(c->m->watches);
	c->debug_hits = 0;
}

/* Whether a page of a booted kernel is to be in the window. */
int kpl_watch_page(kpl_cpu *c, uint64_t va, uint64_t pa)
{
	return c->watching && kpl_window_put(c, &c->m->watches->window, va, pa);
}

/* The address of an access, from what the engine takes for its physical one. 0: it is to
 * nothing that is watched. */
static int address(kpl_machine *m, uint64_t *at)
{
	uint64_t own = (uint64_t)((int64_t)(*at << 16) >> 16);

	if (!m->nram || (*at < KPL_WINDOW && region_at(m, own))) {
		*at = own;
		return 1;
	}
	return *at >= KPL_WINDOW && kpl_window_address(&m->watches->window, at);
}

/* An access that the engine does not tell of. */
void kpl_watch_note(kpl_machine *m, uint64_t at, uint64_t n, int write)
{
	if (m->watches && !m->telling)
		note_access(m, at, n, write ? KPL_WATCH_WRITE : KPL_WATCH_READ);
}

/* For a read that crosses into another page the engine calls this hook three times: for the read,
 * and for the two aligned words that it then reads. */
static void on_access(uc_engine *uc, uc_mem_type type, uint64_t at, int size, int64_t value, void *user)
{
	kpl_cpu *c = running(user);

	if (!c->m->watches || c->m->telling || c->reason >= KPL_EXIT)
		return;
	if (c->m->words) {
		c->m->words--;
		return;
	}
	if (type == UC_MEM_READ && (at & (PAGE - 1)) + size > PAGE)
		c->m->words = 2;
	if (address(c->m, &at))
		note_access(c->m, at, size, type == UC_MEM_WRITE ? KPL_WATCH_WRITE : KPL_WATCH_READ);
}

static void release(kpl_watches *l)
{
	if (!l || --l->users)
		return;
	free(l->window.pages);
	free(l);
}

/* Tells Go of the hits, with regs->ip as the next instruction. */
static int ask_go(kpl_cpu *c, kpl_regs *regs)
{
	kpl_machine *m = c->m;
	kpl_watches *l = m->watches;
	uint64_t last = c->last_ip;

	l->users++;
	for (int i = 0; i < l->nhits; i++)
		l->hits[i].now = held(m, l->hit[i]);
	if (!m->free_hits)
		m->extra += m->trap_cost;
	struct level level = kpl_enter_go(c, 1);
	m->telling++;
	int answer = kplWatched(m->handle, l->hits, l->nhits, regs);
	m->telling--;
	c->last_ip = last;
	forget(l);
	release(l);
	kpl_leave_go(c, &level);
	return answer;
}

/* How many bits the counter of the string instruction with rep at ip has, 0 where there is
 * another instruction. */
int kpl_watch_repeats(kpl_machine *m, uint64_t ip)
{
	struct text t = { .va = ip };
	int rep = 0, bits = 64;
	uint8_t b;

	for (int i = 0; i < 15 && next_byte(m, &t, &b); i++) {
		if (b == 0xf3 || b == 0xf2)
			rep = 1;
		else if ((b >= 0xa4 && b <= 0xa7) || (b >= 0xaa && b <= 0xaf) || (b >= 0x6c && b <= 0x6f))
			return rep ? bits : 0;
		else if (b == 0x67)
			bits = 32;
		else if (b != 0x66 && b != 0x2e && b != 0x3e && b != 0x26 && b != 0x36 && b != 0x64 &&
			 b != 0x65 && b != 0xf0 && (b & 0xf0) != 0x40)
			return 0;
	}
	return 0;
}

/* Tells of hits before the instruction at ip: Go, then the guest. The block is left, because what it has kept
 * of the registers may not hold any more; what of it was counted and has not run will be
 * counted again. */
static void tell(kpl_cpu *c, uint64_t ip, uint32_t size, int again)
{
	int bits = again || c->last_ip != ip ? 0 : kpl_watch_repeats(c->m, ip);
	kpl_regs regs;

	c->m->instrs -= c->m->every ? 1 : c->left;
	c->left = 0;
	kpl_read_regs(c, &regs);
	regs.ip = ip;
	if (bits && !(regs.cx << (64 - bits))) /* the engine would look at the counter once more */
		regs.ip += size;
	if (hosts(c->m)) {
		if (ask_go(c, &regs) != KPL_RESUME) {
			c->reason = KPL_ERROR;
			uc_emu_stop(c->uc);
			return;
		}
		c->resumed = again ? regs.ip : 0;
		c->resumes = again;
		kpl_change_regs(c, &regs, NULL, 1);
	}
	if (c->debug_hits)
		kpl_debug_trap(c, regs.ip);
}

/* Tells Go of the hits of an instruction that a debug trap follows. */
int kpl_watch_tell(kpl_cpu *c, kpl_regs *regs)
{
	if (!hosts(c->m))
		return KPL_RESUME;
	return ask_go(c, regs);
}

/* A run has ended: reports the accesses of its last instruction to Go, if that has completed. The guest's
 * own watchpoints are reported when the CPU continues. */
void kpl_watch_end(kpl_cpu *c, int completed)
{
	kpl_regs regs;

	if (!completed || c->miss || c->reason >= KPL_FAULT)
		kpl_watch_forget(c);
	if (!hosts(c->m))
		return;
	kpl_read_regs(c, &regs);
	if (ask_go(c, &regs) != KPL_RESUME)
		c->reason = KPL_ERROR;
	else
		kpl_change_regs(c, &regs, NULL, !c->in_callout);
}

/* The first watch for the execution of the instruction at an address, n without one. */
static int executed_at(const kpl_watches *l, uint64_t at)
{
	for (int i = l->nexec ? first_after(l, at - 1) : l->n; i < l->n && l->w[i].addr == at; i++)
		if (l->w[i].kinds & KPL_WATCH_EXEC)
			return i;
	return l->n;
}

int kpl_watch_executed(kpl_machine *m, uint64_t at) { return m->watches && executed_at(m->watches, at) < m->watches->n; }

/* Whether the instruction at pc has hit already: it has had an iteration, or an exception
 * or the guest's handler has returned to it. A processor meets the breakpoint before it fetches the
 * instruction, and the engine after that: a fault of the fetch comes first here. */
static int goes_on(kpl_cpu *c, uint64_t pc)
{
	uint64_t flags = 0;

	if (c->unfetched == pc)
		return 0;
	if (c->last_ip == pc)
		return kpl_watch_repeats(c->m, pc);
	uc_reg_read(c->uc, UC_X86_REG_EFLAGS, &flags);
	return c->m->nram && kpl_resume_flag(c, pc, flags) & KPL_FLAG_RF;
}

/* Records that the instruction at pc is about to be executed. An instruction whose hit was reported
 * continues without another hit. */
static int executes(kpl_cpu *c, uint64_t pc)
{
	kpl_machine *m = c->m;
	kpl_watches *l = m->watches;
	int i;

	if (m->telling || (c->resumes && c->resumed == pc) || (i = executed_at(l, pc)) == l->n || goes_on(c, pc))
		return 0;
	for (; i < l->n && l->w[i].addr == pc; i++)
		if (l->w[i].kinds & KPL_WATCH_EXEC)
			note(m, &l->w[i], KPL_WATCH_EXEC);
	c->unfetched = 0;
	return pending(c);
}

/* Before each instruction. Its block is counted before the first one, not by the block
 * hook: there the engine has not set rip yet. */
static void on_watched_code(uc_engine *uc, uint64_t pc, uint32_t size, void *user)
{
	kpl_cpu *c = running(user);
	kpl_machine *m = c->m;

	m->words = 0;
	if (c->fresh)
		c->left = 0;
	if (pending(c) && !c->reason) {
		tell(c, pc, size, 0);
		return;
	}
	if (c->fresh) {
		c->fresh = 0;
		if (!kpl_block_begins(c, pc))
			return;
	}
	if (m->watches && !c->reason && executes(c, pc)) {
		tell(c, pc, size, 1);
		return;
	}
	c->resumes = 0;
	c->last_ip = pc;
	if (c->left)
		c->left--;
	kpl_do_own(c, pc);
}

static int by_address(const void *a, const void *b)
{
	const kpl_watch *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->cpu != y->cpu ? x->cpu - y->cpu : x->number - y->number;
}

/* Makes the list: the host's watches, and the CPUs' debug registers. The hooks are added or
 * removed when translations are next dropped. */
int kpl_watch_build(kpl_machine *m)
{
	kpl_watch guests[4 * KPL_MAX_CPUS];
	kpl_watches *l = NULL;
	int n = 0;

	for (int i = 0; i < m->ncpus; i++)
		n += kpl_debug_watches(m->cpus[i], &guests[n]);
	int nguests = n;
	if (n += m->nhosts) {
		size_t hits = sizeof *l + n * sizeof *l->w;
		if (!(l = calloc(1, hits + n * (sizeof *l->hits + sizeof *l->hit))))
			return -1;
		l->hits = (kpl_watch_hit *)((uint8_t *)l + hits);
		l->hit = (kpl_watch **)(l->hits + n);
		l->users = 1;
		l->n = n;
		memcpy(l->w, guests, nguests * sizeof *l->w);
		if (m->nhosts)
			memcpy(l->w + nguests, m->hosts, m->nhosts * sizeof *l->w);
		if (nguests)
			qsort(l->w, n, sizeof *l->w, by_address);
		for (int i = 0; i < n; i++)
			l->nexec += !!(l->w[i].kinds & KPL_WATCH_EXEC);
		if (m->nram && kpl_window_list(&l->window, l->w, n)) {
			free(l);
			return -1;
		}
	}
	release(m->watches);
	m->watches = l;
	return 0;
}

/* Replaces the host's watches, which are sorted by address. */
int kpl_watch_set(kpl_machine *m, const kpl_watch *list, int n)
{
	kpl_watch *old = m->hosts, *hosts = NULL;
	int had = m->nhosts;

	if (n && !(hosts = malloc(n * sizeof *hosts)))
		return -1;
	if (n)
		memcpy(hosts, list, n * sizeof *hosts);
	m->hosts = hosts;
	m->nhosts = n;
	if (kpl_watch_build(m)) {
		m->hosts = old;
		m->nhosts = had;
		free(hosts);
		return -1;
	}
	free(old);
	return 0;
}

/* Has the translations dropped before the outermost run's next block. */
void kpl_watch_drop(kpl_cpu *c)
{
	c->buffer->drop = 1;
	c->m->stop_at = 0;
}

/* The list is another one: the TLB forgets which pages have watches, and the hooks come before
 * the outermost run's next block. */
void kpl_watch_again(kpl_cpu *c)
{
	uc_ctl_flush_tlb((uc_engine *)c->uc);
	if (!c->m->watches || c->watching)
		return;
	kpl_watch_drop(c);
}

/* The CPU's translations are gone: adds the hooks, or takes them away. The CPUs of a booted
 * machine have them in common. */
void kpl_watch_hooks(kpl_cpu *c)
{
	kpl_machine *m = c->m;
	kpl_cpu *has = m->nram ? m->cpus[0] : c;
	int want = m->watches != NULL;
	uc_engine *uc = c->uc;

	if (want == has->watching)
		return;
	if (!want) {
		uc_hook_del(uc, has->watch_hooks[0]);
		uc_hook_del(uc, has->watch_hooks[1]);
	} else if (kpl_window_map(has) ||
		   uc_hook_add(uc, &has->watch_hooks[0], UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, on_access, has, 1, 0) ||
		   uc_hook_add(uc, &has->watch_hooks[1], UC_HOOK_CODE, on_watched_code, has, 1, 0))
		return;
	has->watching = want;
	has->fresh = 0;
	if (!m->nram)
		return;
	uc_ctl_flush_tlb(uc);
	for (int i = 0; i < m->ncpus; i++) {
		m->cpus[i]->watching = want;
		m->cpus[i]->fresh = 0;
	}
}
