/* The C side of the machine: what the Go binding has no call for, and what must
 * not cost a crossing into Go (TLB fills, block counts, most hypercalls). */
#ifndef KPL_SHIM_H
#define KPL_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "ports.h"

/* Attributes of a guest page. A page with none is not mapped. KPL_U, user mode may
 * use it, is known of a booted kernel's pages only; so is KPL_FETCHED, code of it was
 * run, and whether the engine's TLB may have the page for writing or for fetching. */
enum { KPL_R = 1, KPL_W = 2, KPL_X = 4, KPL_DIRTY = 8, KPL_U = 16, KPL_FETCHED = 32,
       KPL_TLB_W = 64, KPL_TLB_X = 128 };

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
	KPL_FAULT,   /* of this vector; addr and access are a page fault's */
	KPL_ERROR,   /* Go stopped the run, and has the error */
	KPL_NO_PAGE, /* addr: a physical address that is missing in the dump, or is no memory */
	KPL_AGAIN,   /* the block at ip has to be translated anew */
	KPL_TRIPLE,  /* an exception could not be delivered */
	KPL_DEAD,    /* the task of the host's call ends */
	KPL_PANIC,   /* the kernel has printed its panic message, and would wait for ever */
	KPL_RESET,   /* the kernel told the board to reset */
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

/* Where a guest address is in host memory: host is its byte, as far as the end of
 * the page; page_host and attr are its page's. page names the page: its address, or
 * the physical one of a booted kernel's memory (ram). */
typedef struct kpl_place {
	uint8_t *host, *attr, *page_host;
	uint64_t page, pa;
	uint8_t perm, ram;
} kpl_place;

/* What a page held when it was first written after a snapshot. */
typedef struct kpl_undo {
	uint64_t page;
	int ram;
	uint8_t *host;
	uint8_t *attr;
	uint8_t old[4096];
} kpl_undo;

/* The block of size bytes at pc: its instructions that take time, and the work they make. size 0: there is none. */
typedef struct kpl_count {
	uint64_t pc;
	uint16_t size, n;
	uint32_t work;
} kpl_count;

/* The counts of blocks that share a place of the table, the newest first: one line of the host's cache. */
enum { KPL_COUNTS = 16384, KPL_WAYS = 4 };
typedef struct kpl_counts {
	kpl_count way[KPL_WAYS];
} kpl_counts;

/* A task's console output since its last newline. */
typedef struct kpl_line {
	int n;
	uint8_t b[256];
} kpl_line;

enum { KPL_MAX_REGIONS = 256 };

/*
 * The engine's buffer of translations, which fills from its start. The engine gives
 * none back. A block that patched text killed stays until the buffer is full; so does
 * the block that ends a run inside a hook, which is translated for each such run. An
 * engine whose buffer fills up in the middle of a run drops everything, even the blocks
 * of interrupted runs that are to go on: a crash. So it is made to drop everything
 * between runs, long before.
 *
 * Translated code calls the block hook, and so the hook's return address says how far
 * the buffer is filled. What was translated after that block can only be estimated:
 * BLOCK_BYTES for each block that the engine says it has translated, and CODE_BYTES for
 * every byte of guest code. That is three times what compiled code takes, and half of
 * what the densest takes.
 */
typedef struct kpl_buffer {
	uint64_t low, high; /* host addresses: the lowest and the highest where a block has called the hook */
	uint64_t since;     /* host bytes, estimated, that were translated after the highest */
	int drop;           /* all is to be dropped before the outermost run's next block */
} kpl_buffer;

enum { KPL_BLOCK_BYTES = 400, KPL_CODE_BYTES = 160 };

/*
 * The buffer's size; the fill at which everything is dropped between runs; and the fill
 * that no run inside a hook passes, which is below half of the size.
 */
typedef struct kpl_room {
	uint64_t size, flush_at, never_above;
} kpl_room;

/* What takes the host's time beside instructions, as instructions that would
 * take as long. It is no part of the virtual clock or of the budget. */
enum { KPL_WORK_BLOCK = 1000, KPL_WORK_BYTE = 100, KPL_WORK_TRAP = 150, KPL_WORK_FILL = 60, KPL_WORK_TURN = 200, KPL_WORK_FLUSH = 100000, KPL_WORK_LOOK = 300 };

/* The local APIC of a CPU, as far as a kernel uses it (SDM Vol. 3A, chapter 11). */
typedef struct kpl_apic {
	uint32_t id, tpr, ldr, dfr, svr, icr_high, divide, initial;
	uint32_t lvt[7];
	uint32_t isr[8], irr[8];
	uint64_t started; /* when the timer was, in virtual nanoseconds */
	uint64_t due;     /* when it fires; 0: it does not run */
	uint64_t period;  /* of a periodic timer, in nanoseconds */
	int guessed;      /* the kernel has not set the timer since the dump */
} kpl_apic;

enum { KPL_MAX_RAM = 32, KPL_MAX_CPUS = 64 };

/* Physical addresses of the devices: I/O APIC, HPET, local APIC. */
#define KPL_DEVICES     0xfec00000ull
#define KPL_DEVICES_END 0xff000000ull

/* Watched memory: a watch of the host with that number if cpu is KPL_HOSTS, else a debug register
 * of that CPU. place is 1 plus the index of its hit, 0 without a hit. */
typedef struct kpl_watch {
	uint64_t addr;
	uint32_t len, kinds;
	int32_t number, place, cpu;
} kpl_watch;

enum { KPL_HOSTS = -1 };

/* Laid out as machine.WatchHit. */
typedef struct kpl_watch_hit {
	int32_t watch;
	uint32_t kinds;
	uint64_t old, now;
} kpl_watch_hit;

typedef struct kpl_watches kpl_watches;

struct kpl_cpu;

/* An action before an instruction of a booted kernel. */
typedef struct kpl_own {
	uint64_t at;
	void (*what)(struct kpl_cpu *c, uint64_t at);
} kpl_own;

/* A page of text that the host has changed. seen is the guest's view of it, was that view when the
 * two were last made consistent. */
typedef struct kpl_view {
	uint64_t va, pa;
	uint8_t *text, *seen, *was, *attr;
	int next; /* the next in one chain */
} kpl_view;

enum { KPL_MAX_VIEWS = 8192, KPL_VIEW_CHAINS = 256 };

typedef struct kpl_machine {
	/* As far as begun, it is laid out as contract.Shared. */
	uint64_t instrs;    /* instructions that ran; a block's count as it begins */
	uint64_t extra;     /* the virtual clock is instrs + extra nanoseconds */
	uint64_t stop_at;   /* the run stops before the next block once instrs is this */
	uint64_t budget;    /* no run goes on once instrs is this */
	uint64_t work;      /* host work that no instruction stands for; WORK_ above */
	uint64_t allowance; /* no run goes on once work is more than this */
	uint64_t crossings; /* how often a hook called Go */
	uint64_t outer_end; /* what a function that the host called returns to */
	uint64_t inner_end; /* the same for a run inside a hook, which ends there */
	uint32_t expired;   /* no run goes on once this is 1; a timer of Go's sets it, and then stop_at */
	int task;           /* the number of the task that runs */
	uint64_t begun;     /* instrs before the running block's were added */

	uintptr_t handle;   /* Go's number for the machine */
	kpl_region ram[KPL_MAX_RAM]; /* of a booted kernel, by physical address */
	int nram;           /* 0: the machine has not booted */
	kpl_room room;      /* in each CPU's buffer of translations */
	int levels;         /* of its page tables: 4 or 5 */
	uint64_t limit;     /* a booted machine stops for Go once instrs is this */
	uint64_t tsc_khz, tsc_base, hpet_base, pm_base; /* the counters' rates and first values */
	struct kpl_cpu *cur; /* the CPU that runs, or ran last */
	struct kpl_cpu *cpus[KPL_MAX_CPUS]; /* of a booted machine */
	int ncpus;
	uint32_t broadcast; /* the APIC's number for all: 0xff, or 0xffffffff of an x2APIC */
	int turn;           /* another CPU has something to do: the slice ends */
	uint64_t own_syscall; /* the syscall instruction of a system call that the host made returns to it */
	uint64_t seen_calls[8]; /* a bit for each number of a system call that the host wants to see; the kernel gets them all the same */
	uint32_t host_calls;  /* the upper half of the numbers of system calls that are for the host; 0: none */
	uint64_t stop_at_ip;  /* an outermost run ends here; 0: nowhere */
	int dropping;         /* translations are being dropped, whatever the CPU may fetch */
	kpl_region regions[KPL_MAX_REGIONS];
	int nregions;
	kpl_own *own;         /* by at */
	int nown, cap_own;
	int free_hits;      /* traps and code of the machine's own region take no time */
	uint64_t own_start, own_end; /* that region */
	uint64_t trap_cost; /* of an int3 or #DB, in virtual nanoseconds */
	uint64_t interrupts, trail; /* taken since the machine was made or restored, and a digest of when and where */
	int user_mode;      /* the CS of a frame decides the mode */
	int every;          /* count and stop by instructions, not by blocks */
	int track;          /* a snapshot exists: save a page when it is first written */
	kpl_undo **undo;
	int nundo, cap_undo;
	uint8_t *console;
	size_t nconsole, cap_console;
	kpl_line *lines;    /* by task */
	int nlines;
	kpl_counts *counts; /* KPL_COUNTS of them */
	kpl_watch *hosts;   /* the host's watches, by address */
	int nhosts;
	kpl_watches *watches; /* those, and of the debug registers; NULL: nothing is watched */
	int words;          /* the number of words of a read in two pages that follow */
	int telling;        /* hits are being reported to Go: no new ones are recorded */
	kpl_view *views;
	int nviews, cap_views, view_chains[KPL_VIEW_CHAINS];
	uint8_t *seen;      /* the guest's views of the pages, one after another */
	uint64_t *taken;    /* addresses where the guest has overwritten the host's changes, to be reported */
	int ntaken, cap_taken;
	uint64_t *held;     /* addresses of int3s of the host's that stay, whatever the guest writes there */
	int nheld, cap_held;
} kpl_machine;

typedef struct kpl_cpu {
	void *uc;           /* the uc_engine of the binding's Handle() */
	kpl_machine *m;
	int n;
	int depth;          /* the number of runs on this engine that have begun and not ended */
	kpl_buffer own_buffer, *buffer; /* of the CPU's engine: a booted machine's CPUs have the first one's */
	int broken;         /* the engine has aborted: no more runs */
	int in_callout;     /* Go was called in the middle of a block: rip must stay */
	uint64_t block;     /* the address of the running block */
	int reason, vector, access;
	uint64_t addr, arg;
	uint64_t ip;        /* the address at which the run ended */
	uint64_t at;        /* the faulting instruction, if rip is past it; else 0 */
	int miss;           /* a TLB fill was refused; for miss_addr and miss_access */
	uint64_t miss_addr;
	int miss_access;
	kpl_regs regs;      /* as Go read them last */
	int answer;         /* the int3 at answer_at goes on at answer_to, with more flags; laid out as contract.Answer */
	uint64_t answer_at, answer_to, answer_flags;
	uint64_t until;     /* the address at which a run of user mode ends, of an instruction that it may not execute; 0 for none */
	int user;           /* it is in user mode; of a machine with user_mode */
	int watching;       /* it has the hooks for watches */
	size_t watch_hooks[2];
	int window;         /* it has the memory at KPL_WINDOW */
	int fresh;          /* a block begins, and is not counted yet */
	uint32_t block_size;
	uint64_t left;      /* the number of the block's instructions that have not run */
	int resumes;        /* the hit of the instruction at resumed was reported, and it continues */
	uint64_t resumed, last_ip; /* last_ip: the one that ran last */
	uint64_t unfetched; /* an instruction whose fetch has faulted: RF is set, but its breakpoint is still to come */
	kpl_apic apic;      /* from here on: a booted kernel's */
	uint64_t dr[8];     /* its debug registers */
	uint32_t debug_hits; /* what the instruction that runs does to them, as in DR6 */
	int halted;         /* it waits in hlt */
	int nmi;            /* one waits for it */
	uint64_t lstar, star, fmask;
	void *env;          /* a uc_context, to change what has no register number */
	void *parked;       /* another, its state while another CPU runs on the engine */
	size_t env_at;      /* where the engine's state begins in it */
	void *before;       /* the engine's state before the exception that is looked for */
	size_t old_exception; /* and where that is, from env_at */
	uint8_t kernel_segs[2][24]; /* CS and SS of kernel mode */
	uint32_t kernel_flags;      /* and its hflags */
} kpl_cpu;

void kpl_machine_free(kpl_machine *m);
int kpl_here(const kpl_machine *m);
int kpl_add_region(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr);
void kpl_touch(kpl_machine *m, uint64_t addr, uint64_t size);
void kpl_undo_drop(kpl_machine *m, int from);
void kpl_watch_drop(kpl_cpu *c);
int kpl_new_counts(kpl_machine *m);
void kpl_forget_counts(kpl_machine *m, uint64_t addr, uint64_t end);
void kpl_forget_all_counts(kpl_machine *m);
void kpl_console_clear(kpl_machine *m);
void kpl_console_flush(kpl_machine *m);

void kpl_rescue(void);
void kpl_learn_helpers(void);
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
void kpl_change_all(kpl_cpu *c, const kpl_regs *r);
void kpl_apic_start(kpl_cpu *c, int timer);
void kpl_call(kpl_cpu *c, uint64_t sp, const uint64_t *args, uint64_t flags);

int kpl_watch_set(kpl_machine *m, const kpl_watch *list, int n);
int kpl_watch_build(kpl_machine *m);
void kpl_watch_hooks(kpl_cpu *c);
void kpl_watch_forget(kpl_cpu *c);
void kpl_watch_end(kpl_cpu *c, int completed);
int kpl_watch_tell(kpl_cpu *c, kpl_regs *regs);

/* Where an engine has the pages that the guest sees in the place of text: where no memory of a
 * dump and no region is. */
#define KPL_SEEN 0x700000000000ull

void kpl_view_init(kpl_machine *m, uint8_t *seen);
int kpl_view_add(kpl_cpu *c, uint64_t addr, uint64_t size);
int kpl_hold(kpl_machine *m, uint64_t va, int on);
void kpl_view_settle(kpl_cpu *c);
uint8_t *kpl_view_at(kpl_machine *m, uint64_t va);
void kpl_view_reset(kpl_machine *m, const uint8_t *kept, int n);

void kpl_debug_reset(kpl_cpu *c);

enum { KPL_NO_CODE = -1, KPL_SOFTWARE = -2 }; /* in place of an exception's error code */

/* What a walk of page tables came to. */
enum { KPL_FOUND, KPL_DEVICE, KPL_ABSENT, KPL_FORBIDDEN, KPL_FILTERED, KPL_NO_RAM };

int kpl_add_ram(kpl_machine *m, uint64_t start, uint64_t size, uint8_t *host, uint8_t *attr);
int kpl_walk(kpl_machine *m, uint64_t cr3, uint64_t va, int need, int mark, kpl_place *p);
int kpl_at(kpl_machine *m, uint64_t va, kpl_place *p);
void kpl_keep(kpl_machine *m, const kpl_place *p);
uint64_t kpl_cr3(kpl_cpu *c);
int kpl_add_devices(kpl_cpu *c);
int kpl_env_find(kpl_cpu *c);
int kpl_park(kpl_cpu *c);
int kpl_unpark(kpl_cpu *c);
void kpl_env_free(kpl_cpu *c);
int kpl_env_probe(kpl_cpu *c, int before);
int kpl_deliver(kpl_cpu *c, int vector, int64_t error, uint64_t ip, int in_block);
int kpl_interrupt(kpl_cpu *c, uint64_t ip, int in_block);
int kpl_pending(kpl_cpu *c);
void kpl_aim(kpl_machine *m);
int kpl_next_event(kpl_machine *m, uint64_t *at);
void kpl_set_mode(kpl_cpu *c, uint16_t cs, uint16_t ss);
void kpl_set_user(kpl_cpu *c, int user);
int kpl_forbidden(kpl_machine *m, uint64_t at);
void kpl_forget_exception(kpl_cpu *c);
void kpl_set_cr2(kpl_cpu *c, uint64_t va);
void kpl_set_msr(kpl_cpu *c, uint32_t msr, uint64_t v);
uint64_t kpl_msr(kpl_cpu *c, uint32_t msr);
void kpl_hook_instruction(kpl_cpu *c, uint64_t at);
int kpl_special(kpl_machine *m, uint64_t at);
void kpl_hook_exit(kpl_cpu *c, uint64_t at);
void kpl_hook_dead(kpl_cpu *c, uint64_t at);
void kpl_hook_dump(kpl_cpu *c, uint64_t at);
void kpl_hook_stop(kpl_cpu *c, uint64_t at);
void kpl_hook_shown(kpl_cpu *c, uint64_t at);

#endif
