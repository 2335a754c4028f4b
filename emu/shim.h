/* The C side of the machine: what Go cannot say to Unicorn directly, and what
 * must not cost a crossing into Go (TLB fills, block counts, hypercalls). */
#ifndef KPL_SHIM_H
#define KPL_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "ports.h"

/* Attributes of a guest page. A page with none is not mapped. */
enum { KPL_R = 1, KPL_W = 2, KPL_X = 4, KPL_DIRTY = 8 };

/* Why a run ended. KPL_FAULT carries a vector; KPL_ERROR was recorded by Go. */
enum {
	KPL_NONE,    /* not yet, or for no reason the shim knows */
	KPL_RETURN,  /* reached the return address of the host */
	KPL_HALT,    /* hlt */
	KPL_TIME,    /* instrs reached stop_at, before the block at rip */
	KPL_CROWDED, /* translations are to be dropped, before the block at rip */
	KPL_YIELD,
	KPL_SLEEP,   /* arg: virtual nanoseconds */
	KPL_EXIT,
	KPL_FAULT,   /* vector, addr and access for a page fault */
	KPL_ERROR,
	KPL_ENGINE   /* it gave up; Go has the error */
};

/* An answer to an int3 that Go has given before it happens. */
enum { KPL_NO_ANSWER, KPL_ANSWER, KPL_ANSWERED };

/* What Go answers to a trap. */
enum { KPL_RESUME, KPL_NOT_MINE, KPL_STOP };

/* struct pt_regs, as x86.PtRegs. */
typedef struct kpl_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	uint64_t ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} kpl_regs;

/* All that switch_to moves: the frame and the FPU and SSE state. */
typedef struct kpl_state {
	kpl_regs regs;
	uint8_t ymm[16][32];
	uint8_t st[8][16];
	uint16_t fpcw, fpsw, fptag;
	uint32_t mxcsr;
} kpl_state;

/* A piece of guest memory: host bytes, one attribute byte a page. */
typedef struct kpl_region {
	uint64_t start, end;
	uint8_t *host;
	uint8_t *attr;
} kpl_region;

/* What a page held when it was first written after a snapshot. */
typedef struct kpl_undo {
	uint64_t page;
	uint8_t *host;
	uint8_t *attr;
	uint8_t old[4096];
} kpl_undo;

/* How many instructions the block at pc of size bytes has. */
typedef struct kpl_count {
	uint64_t pc;
	uint32_t size, n;
} kpl_count;

/* What a task has written to the console since its line began. */
typedef struct kpl_line {
	int n;
	uint8_t b[256];
} kpl_line;

/* An int3 that is delivered to guest code, with the word that becomes word 0
 * of the CPU's page. */
typedef struct kpl_gate {
	uint64_t at, entry, word;
} kpl_gate;

enum { KPL_GATES = 4096 };

enum { KPL_COUNTS = 65536, KPL_LONG = 64, KPL_LONG_COUNTS = 256, KPL_MAX_REGIONS = 64 };

/*
 * The engine gives no translation back. A block that patched text killed stays
 * until the buffer is full; so does the block that ends a run inside a hook,
 * which is translated for each such run. An engine whose buffer fills up in the
 * middle of a run drops everything, even the blocks of interrupted runs that are
 * to go on: a crash. So it is made to drop everything between runs, long before.
 *
 * What is in the buffer can only be estimated: RUN_BYTES for each nested run,
 * BLOCK_BYTES for each block, and CODE_BYTES for every byte of guest code. That
 * is three times what compiled code takes, and half of what the densest takes.
 */
enum { KPL_RUN_BYTES = 400, KPL_BLOCK_BYTES = 400, KPL_CODE_BYTES = 160 };
enum { KPL_BUFFER = 128 << 20, KPL_FLUSH_AT = 24 << 20, KPL_NEVER_ABOVE = 48 << 20 };

typedef struct kpl_machine {
	uintptr_t handle;
	kpl_region regions[KPL_MAX_REGIONS];
	int nregions;
	uint64_t instrs;    /* instructions that ran, counted as a block begins */
	uint64_t extra;     /* virtual ns beside one for each instruction */
	uint64_t stop_at;   /* a run stops at the first block from so many instrs on */
	uint64_t budget;    /* and does not go on from so many */
	uint64_t crossings; /* calls of hooks into Go */
	uint64_t trap_cost; /* virtual ns of int3 and #DB */
	uint64_t magic;     /* the return address of the host, to a stub that asks */
	uint64_t inner;     /* for the end of it; and that of runs inside a hook */
	int task;
	int every;          /* count and stop by instructions, not blocks */
	int track;          /* a snapshot exists: the first write saves a page */
	kpl_undo **undo;
	int nundo, cap_undo;
	uint8_t *console;
	size_t nconsole, cap_console;
	kpl_line *lines;    /* by task */
	int nlines;
	kpl_count counts[KPL_COUNTS];          /* of blocks up to KPL_LONG bytes */
	kpl_count long_counts[KPL_LONG_COUNTS]; /* of longer ones */
	kpl_gate gates[KPL_GATES]; /* by the low bits of at; entry 0 for none */
	int ngates;
	uint64_t translated; /* host bytes of translations made, estimated */
} kpl_machine;

typedef struct kpl_cpu {
	void *uc;           /* uc_engine, hidden so that Go needs no unicorn.h */
	kpl_machine *m;
	int n;
	int depth;          /* nesting of runs on this engine */
	uint64_t flushed;   /* the machine's translated at the last flush */
	int in_callout;     /* Go was called from translated code: rip must stay */
	uint64_t block;     /* where the block that runs begins */
	int reason, vector, access;
	uint64_t addr, arg;
	uint64_t ip;        /* where the run ended */
	uint64_t at;        /* the faulting instruction where rip is behind it, or 0 */
	int miss;           /* a TLB fill was refused: for addr and access */
	uint64_t miss_addr;
	int miss_access;
	kpl_regs regs;      /* for Go to look at */
	uint64_t *guard;    /* word 0 of its page: no gate is taken while it is not 0 */
	int answer;         /* whether the next int3 is answered already */
	uint64_t answer_at, answer_to, answer_flags;
} kpl_cpu;

void kpl_machine_free(kpl_machine *m);
int kpl_add_region(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr);
void kpl_touch(kpl_machine *m, uint64_t addr, uint64_t size);
void kpl_undo_drop(kpl_machine *m, int from);
void kpl_forget_counts(kpl_machine *m, uint64_t addr, uint64_t end);
void kpl_forget_all_counts(kpl_machine *m);
void kpl_console_clear(kpl_machine *m);
void kpl_console_flush(kpl_machine *m);

int kpl_cpu_setup(kpl_cpu *c);
void kpl_cpu_set_ip(kpl_cpu *c, uint64_t ip);
uint64_t kpl_cpu_ip(kpl_cpu *c);
void kpl_cpu_drop(kpl_cpu *c, uint64_t addr, uint64_t end);
void kpl_cpu_drop_all(kpl_cpu *c);
void kpl_cpu_flush_tlb(kpl_cpu *c);

void kpl_read_regs(kpl_cpu *c, kpl_regs *r);
void kpl_write_regs(kpl_cpu *c, const kpl_regs *r);
void kpl_save(kpl_cpu *c, kpl_state *s);
void kpl_load(kpl_cpu *c, const kpl_state *s, int rip);
void kpl_call(kpl_cpu *c, uint64_t sp, const uint64_t *args, uint64_t flags);

#endif
