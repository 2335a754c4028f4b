/* The C side of the machine: what the Go binding has no call for, and what must
 * not cost a crossing into Go (TLB fills, block counts, most hypercalls). */
#ifndef KPL_SHIM_H
#define KPL_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "ports.h"

/* Attributes of a guest page. A page with none is not mapped. */
enum { KPL_R = 1, KPL_W = 2, KPL_X = 4, KPL_DIRTY = 8 };

/* Why a run ended. */
enum {
	KPL_NONE,    /* it has not, or no hook knows why */
	KPL_RETURN,  /* the function that the host called has returned */
	KPL_HALT,    /* hlt */
	KPL_TIME,    /* instrs reached stop_at; the block at ip has not run */
	KPL_CROWDED, /* translations have to be dropped; the block at ip has not run */
	KPL_YIELD,
	KPL_SLEEP,   /* arg: virtual nanoseconds */
	KPL_EXIT,
	KPL_FAULT,   /* vector says which; addr and access are a page fault's */
	KPL_ERROR,   /* Go asked for it, and has the error */
	KPL_ENGINE   /* the engine failed; Go has the error */
};

/* Whether Go has answered the next int3 already, and whether that has happened. */
enum { KPL_NO_ANSWER, KPL_ANSWER, KPL_ANSWERED };

/* What Go answers to a trap. */
enum { KPL_RESUME, KPL_NOT_MINE, KPL_STOP };

/* struct pt_regs; laid out as x86.PtRegs. */
typedef struct kpl_regs {
	uint64_t r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	uint64_t ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} kpl_regs;

/* What a task switch moves: the frame, and the FPU, SSE and AVX registers. */
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

/* The block of size bytes at pc has n instructions, and makes so much work. */
typedef struct kpl_count {
	uint64_t pc;
	uint16_t size, n;
	uint32_t work;
} kpl_count;

/* A task's console output since its last newline. */
typedef struct kpl_line {
	int n;
	uint8_t b[256];
} kpl_line;

/* The int3 at an address goes to guest code at entry, and word becomes word 0
 * of the CPU's own page. */
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
 * What is in the buffer can only be estimated: BLOCK_BYTES for each block that
 * the engine says it has translated, and CODE_BYTES for every byte of guest code.
 * That is three times what compiled code takes, and half of what the densest takes.
 */
enum { KPL_BLOCK_BYTES = 400, KPL_CODE_BYTES = 160 };
enum { KPL_BUFFER = 128 << 20, KPL_FLUSH_AT = 24 << 20, KPL_NEVER_ABOVE = 48 << 20 };

/* What takes the host's time beside instructions, as instructions that would
 * take as long. It is no part of the virtual clock or of the budget. */
enum { KPL_WORK_BLOCK = 1000, KPL_WORK_BYTE = 100, KPL_WORK_TRAP = 150, KPL_WORK_FILL = 60, KPL_WORK_TURN = 200, KPL_WORK_FLUSH = 100000, KPL_WORK_LOOK = 300 };

typedef struct kpl_machine {
	uintptr_t handle;   /* Go's number for the machine */
	kpl_region regions[KPL_MAX_REGIONS];
	int nregions;
	uint64_t instrs;    /* instructions that ran; a block's count as it begins */
	uint64_t extra;     /* the virtual clock is instrs + extra nanoseconds */
	uint64_t stop_at;   /* the run stops before the next block once instrs is this */
	uint64_t budget;    /* no run goes on once instrs is this */
	uint64_t work;      /* host work that no instruction stands for; WORK_ below */
	uint64_t allowance; /* no run goes on once work is more than this */
	uint32_t expired;   /* no run goes on once this is 1; a timer of Go's sets it, and then stop_at */
	uint64_t crossings; /* how often a hook called Go */
	uint64_t trap_cost; /* of an int3 or #DB, in virtual nanoseconds */
	uint64_t outer_end; /* what a function that the host called returns to */
	uint64_t inner_end; /* the same for a run inside a hook, which ends there */
	int task;           /* the number of the task that runs */
	int every;          /* count and stop by instructions, not by blocks */
	int track;          /* a snapshot exists: save a page when it is first written */
	kpl_undo **undo;
	int nundo, cap_undo;
	uint8_t *console;
	size_t nconsole, cap_console;
	kpl_line *lines;    /* by task */
	int nlines;
	kpl_count counts[KPL_COUNTS];           /* of blocks up to KPL_LONG bytes */
	kpl_count long_counts[KPL_LONG_COUNTS]; /* of longer blocks */
	kpl_gate gates[KPL_GATES];              /* by the low bits of at; entry 0: no gate */
	int ngates;
	uint64_t translated; /* host bytes of all translations so far, estimated */
} kpl_machine;

typedef struct kpl_cpu {
	void *uc;           /* the uc_engine of the binding's Handle() */
	kpl_machine *m;
	int n;
	int depth;          /* how many runs on this engine have begun and not ended */
	uint64_t flushed;   /* m->translated when translations were last dropped */
	int broken;         /* the engine has aborted: no more runs */
	int in_callout;     /* Go was called in the middle of a block: rip must stay */
	uint64_t block;     /* where the running block begins */
	int reason, vector, access;
	uint64_t addr, arg;
	uint64_t ip;        /* where the run ended */
	uint64_t at;        /* the faulting instruction, where rip is past it; else 0 */
	int miss;           /* a TLB fill was refused; for miss_addr and miss_access */
	uint64_t miss_addr;
	int miss_access;
	kpl_regs regs;      /* as Go read them last */
	uint64_t *guard;    /* word 0 of its own page: not 0 while no gate may be taken */
	int answer;         /* the int3 at answer_at goes on at answer_to, with more flags */
	uint64_t answer_at, answer_to, answer_flags;
} kpl_cpu;

void kpl_machine_free(kpl_machine *m);
int kpl_here(const kpl_machine *m);
int kpl_add_region(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr);
void kpl_touch(kpl_machine *m, uint64_t addr, uint64_t size);
void kpl_undo_drop(kpl_machine *m, int from);
void kpl_forget_counts(kpl_machine *m, uint64_t addr, uint64_t end);
void kpl_forget_all_counts(kpl_machine *m);
void kpl_console_clear(kpl_machine *m);
void kpl_console_flush(kpl_machine *m);

void kpl_rescue(void);
int kpl_start(kpl_cpu *c, uint64_t ip, uint64_t until);
int kpl_cpu_setup(kpl_cpu *c);
void kpl_cpu_set_ip(kpl_cpu *c, uint64_t ip);
uint64_t kpl_cpu_ip(kpl_cpu *c);
void kpl_cpu_drop(kpl_cpu *c, uint64_t addr, uint64_t end);
void kpl_cpu_drop_all(kpl_cpu *c);
void kpl_cpu_flush_tlb(kpl_cpu *c);

void kpl_read_regs(kpl_cpu *c, kpl_regs *r);
void kpl_save(kpl_cpu *c, kpl_state *s);
void kpl_load(kpl_cpu *c, const kpl_state *s, int rip);
void kpl_call(kpl_cpu *c, uint64_t sp, const uint64_t *args, uint64_t flags);

#endif
