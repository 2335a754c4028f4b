//go:build unicorn && cgo && linux && amd64

/* Guest memory, what a snapshot keeps of it, and the console. */

#include <stdlib.h>

#include "shim_private.h"

void kpl_machine_free(kpl_machine *m)
{
	kpl_undo_drop(m, 0);
	m->ncpus = 0; /* they are gone */
	kpl_watch_set(m, NULL, 0);
	kpl_view_free(m);
	kpl_free_counts(m);
	free(m->undo);
	free(m->own);
	free(m->console);
	free(m->lines);
	free(m);
}

int kpl_add_region(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr)
{
	if (m->nregions == KPL_MAX_REGIONS)
		return -1;
	m->regions[m->nregions++] = (kpl_region){ start, start + size, host, attr };
	return 0;
}

int kpl_add_ram(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr)
{
	if (m->nram == KPL_MAX_RAM)
		return -1;
	m->ram[m->nram++] = (kpl_region){ start, start + size, host, attr };
	return 0;
}

/* Somebody is about to write the page: keeps what it held for the snapshot. */
void kpl_keep(kpl_machine *m, const kpl_place *p)
{
	if (!m->track || *p->attr & KPL_DIRTY)
		return;
	if (m->nundo == m->cap_undo) {
		int cap = m->cap_undo ? 2 * m->cap_undo : 64;
		kpl_undo **u = realloc(m->undo, cap * sizeof *u);
		if (!u)
			return;
		m->undo = u;
		m->cap_undo = cap;
	}
	kpl_undo *u = malloc(sizeof *u);
	if (!u)
		return;
	u->page = p->page;
	u->ram = p->ram;
	u->host = p->page_host;
	u->attr = p->attr;
	memcpy(u->old, u->host, PAGE);
	m->undo[m->nundo++] = u;
	*p->attr |= KPL_DIRTY;
}

/* The host is about to write guest memory: saves its pages for a snapshot. */
void kpl_touch(kpl_machine *m, uint64_t addr, uint64_t size)
{
	kpl_place p;

	if (!m->track || !size)
		return;
	for (uint64_t left = size; left;) {
		uint64_t n = PAGE - (addr & (PAGE - 1));
		if (kpl_at(m, addr, &p))
			kpl_keep(m, &p);
		n = n < left ? n : left;
		addr += n;
		left -= n;
	}
}

void kpl_undo_drop(kpl_machine *m, int from)
{
	for (int i = from; i < m->nundo; i++)
		free(m->undo[i]);
	m->nundo = from;
}

void kpl_console_clear(kpl_machine *m) { m->nconsole = 0; }

static void console_add(kpl_machine *m, uint8_t b)
{
	if (m->nconsole == m->cap_console) {
		size_t cap = m->cap_console ? 2 * m->cap_console : 1024;
		uint8_t *p = cap <= 1 << 24 ? realloc(m->console, cap) : NULL;
		if (!p)
			return; /* a console of 16 MiB is full */
		m->console = p;
		m->cap_console = cap;
	}
	m->console[m->nconsole++] = b;
}

static void line_end(kpl_machine *m, kpl_line *l)
{
	for (int i = 0; i < l->n; i++)
		console_add(m, l->b[i]);
	l->n = 0;
}

/* Adds unfinished lines to the console, for somebody is about to read it. */
void kpl_console_flush(kpl_machine *m)
{
	for (int i = 0; i < m->nlines; i++)
		line_end(m, &m->lines[i]);
}

/* Several tasks may print at once, and a kernel's printk keeps each line whole.
 * So a task's line is kept until it ends. */
void kpl_console_put(kpl_machine *m, uint8_t b)
{
	if (m->task >= m->nlines) {
		kpl_line *l = realloc(m->lines, (m->task + 1) * sizeof *l);
		if (!l) {
			console_add(m, b);
			return;
		}
		memset(l + m->nlines, 0, (m->task + 1 - m->nlines) * sizeof *l);
		m->lines = l;
		m->nlines = m->task + 1;
	}
	kpl_line *l = &m->lines[m->task];
	l->b[l->n++] = b;
	if (b == '\n' || l->n == sizeof l->b)
		line_end(m, l);
}
