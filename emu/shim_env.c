//go:build unicorn && cgo && linux && amd64

/* What the engine keeps of a CPU and has no register numbers for: the caches of
 * segments, the flags that say which mode it is in, the exception in flight. The
 * way to them is the engine's own way to save and restore a CPU as one piece.
 *
 * Where things are in it is looked up, not known: values that are written by their
 * register numbers have to show up at their places, else the engine is not one that
 * a booted kernel can run on. */

#include <stdlib.h>

#include "shim_private.h"

/* From where the general registers begin. */
enum { ENV_EIP = 128, ENV_HFLAGS = 176, ENV_SEGS = 184, ENV_SEG = 24, ENV_CR3 = 448, ENV_LEAST = 1024 };
enum { SEG_CS = 1, SEG_SS = 2, SEG_GS = 5, SEG_BASE = 8 };
enum { HF_CPL = 3, HF_CS32 = 1 << 4, HF_SS32 = 1 << 5, HF_ADDSEG = 1 << 6, HF_INHIBIT = 1 << 3, HF_CS64 = 1 << 15,
       HF_MODE = HF_CPL | HF_CS32 | HF_SS32 | HF_ADDSEG | HF_CS64 };

static uint8_t *env_of(kpl_cpu *c) { return (uint8_t *)c->env + c->env_at; }

static void load_env(kpl_cpu *c) { uc_context_save(c->uc, c->env); }
static void store_env(kpl_cpu *c) { uc_context_restore(c->uc, c->env); }

static size_t env_size(kpl_cpu *c) { return uc_context_size(c->uc); }

/* The general registers, in the order of their numbers in instructions. */
int kpl_general[16] = {
	UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX, UC_X86_REG_RSP, UC_X86_REG_RBP,
	UC_X86_REG_RSI, UC_X86_REG_RDI, UC_X86_REG_R8, UC_X86_REG_R9, UC_X86_REG_R10, UC_X86_REG_R11,
	UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15,
};

/* Returns 1 if the engine's state is at the place that this file assumes. */
int kpl_env_find(kpl_cpu *c)
{
	uint64_t mark[16], old[16], gs = 0x5a5a1234dead0000ull, old_gs = 0, cr3 = 0;
	uint16_t cs = 0;
	void *vals[16];
	int found = 0;

	if (uc_context_alloc(c->uc, (uc_context **)&c->env) != UC_ERR_OK)
		return 0;
	for (int i = 0; i < 16; i++) {
		mark[i] = 0x9e3779b97f4a7c15ull * (i + 1);
		uc_reg_read(c->uc, kpl_general[i], &old[i]);
		vals[i] = &mark[i];
	}
	uc_reg_read(c->uc, UC_X86_REG_GS_BASE, &old_gs);
	uc_reg_read(c->uc, UC_X86_REG_CR3, &cr3);
	uc_reg_read(c->uc, UC_X86_REG_CS, &cs);
	uc_reg_write_batch(c->uc, kpl_general, vals, 16);
	uc_reg_write(c->uc, UC_X86_REG_GS_BASE, &gs);
	load_env(c);
	for (size_t at = 0; at + ENV_LEAST < env_size(c) && !found; at++) {
		const uint8_t *e = (uint8_t *)c->env + at;
		found = !memcmp(e, mark, sizeof mark) &&
			!memcmp(e + ENV_SEGS + SEG_GS * ENV_SEG + SEG_BASE, &gs, sizeof gs) &&
			!memcmp(e + ENV_SEGS + SEG_CS * ENV_SEG, &cs, sizeof cs) &&
			!memcmp(e + ENV_CR3, &cr3, sizeof cr3) &&
			(*(uint32_t *)(e + ENV_HFLAGS) & (HF_CS64 | HF_CPL)) == HF_CS64;
		c->env_at = at;
	}
	for (int i = 0; i < 16; i++)
		vals[i] = &old[i];
	uc_reg_write_batch(c->uc, kpl_general, vals, 16);
	uc_reg_write(c->uc, UC_X86_REG_GS_BASE, &old_gs);
	if (found) {
		memcpy(c->kernel_segs[0], env_of(c) + ENV_SEGS + SEG_CS * ENV_SEG, ENV_SEG);
		memcpy(c->kernel_segs[1], env_of(c) + ENV_SEGS + SEG_SS * ENV_SEG, ENV_SEG);
		c->kernel_flags = *(uint32_t *)(env_of(c) + ENV_HFLAGS) & HF_MODE;
	}
	return found;
}

void kpl_env_free(kpl_cpu *c)
{
	if (c->env)
		uc_context_free(c->env);
	if (c->parked)
		uc_context_free(c->parked);
}

/* Keeps the engine's state while another CPU runs on the engine. */
int kpl_park(kpl_cpu *c)
{
	uc_err e = UC_ERR_OK;

	if (!c->parked)
		e = uc_context_alloc(c->uc, (uc_context **)&c->parked);
	return e ? e : uc_context_save(c->uc, c->parked);
}

/* The CPU goes on, if it was parked. */
int kpl_unpark(kpl_cpu *c)
{
	uc_err e = UC_ERR_OK;

	if (c->parked && !(e = uc_context_restore(c->uc, c->parked)))
		uc_ctl_flush_tlb((uc_engine *)c->uc);
	return e;
}

/* Called before and after a division by zero: finds the word that went from -1 to
 * 0, the exception in flight. */
int kpl_env_probe(kpl_cpu *c, int before)
{
	size_t n = env_size(c) - c->env_at;
	const uint8_t *old = c->before;
	int found = 0;

	load_env(c);
	if (before) {
		if ((c->before = malloc(n)))
			memcpy(c->before, env_of(c), n);
		return c->before != NULL;
	}
	for (size_t i = ENV_LEAST; old && i + 4 <= n; i += 4)
		if (*(int32_t *)(old + i) == -1 && *(int32_t *)(env_of(c) + i) == 0) {
			c->old_exception = i;
			found++;
		}
	free(c->before);
	c->before = NULL;
	return found == 1;
}

static void clear_exception(kpl_cpu *c)
{
	if (c->old_exception) /* else it was not looked for */
		*(int32_t *)(env_of(c) + c->old_exception) = -1;
}

/* Without it, the engine takes the next exception for a double fault. */
void kpl_forget_exception(kpl_cpu *c)
{
	load_env(c);
	clear_exception(c);
	store_env(c);
}

/* Puts the CPU into 64-bit mode at the privilege of cs. The descriptors are those
 * that every Linux has: flat. */
void kpl_set_mode(kpl_cpu *c, uint16_t cs, uint16_t ss)
{
	load_env(c);
	uint8_t *e = env_of(c);
	uint8_t *seg[] = { e + ENV_SEGS + SEG_CS * ENV_SEG, e + ENV_SEGS + SEG_SS * ENV_SEG };
	uint16_t selector[] = { cs, ss };
	uint32_t *hflags = (uint32_t *)(e + ENV_HFLAGS);
	enum { SEG_FLAGS = 20, DPL_SHIFT = 13 };

	for (int i = 0; i < 2; i++) {
		memcpy(seg[i], c->kernel_segs[i], ENV_SEG);
		*(uint32_t *)seg[i] = selector[i];
		*(uint32_t *)(seg[i] + SEG_FLAGS) |= (uint32_t)(cs & 3) << DPL_SHIFT;
	}
	*hflags = (*hflags & ~(HF_MODE | HF_INHIBIT)) | c->kernel_flags | (cs & 3);
	clear_exception(c);
	store_env(c);
}

/* The mode of a machine with user_mode. */
void kpl_set_user(kpl_cpu *c, int user)
{
	kpl_set_mode(c, user ? KPL_USER_CS : KPL_KERNEL_CS, user ? KPL_USER_DS : KPL_KERNEL_DS);
	c->user = user;
}

/* The address of a page fault. (By its register number, the engine would set CR3
 * with it.) */
void kpl_set_cr2(kpl_cpu *c, uint64_t va)
{
	load_env(c);
	*(uint64_t *)(env_of(c) + ENV_CR3 - 8) = va;
	store_env(c);
}

/* The instruction pointer, without leaving the block that runs. */
void kpl_set_eip(kpl_cpu *c, uint64_t ip)
{
	load_env(c);
	*(uint64_t *)(env_of(c) + ENV_EIP) = ip;
	store_env(c);
}
