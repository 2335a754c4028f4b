//go:build unicorn && cgo && linux && amd64

/* What else a quiet kernel reads and writes: the devices' registers in memory, the
 * ports, the model specific registers, the time stamp counter. What is not there
 * reads as all ones, as on a bus. */

#include "shim_private.h"

enum { IOAPIC = 0x0, HPET = 0x100000, LAPIC = 0x200000, DEVICE_SIZE = 0x1000 }; /* from KPL_DEVICES */
enum { HPET_CAPABILITIES = 0x0, HPET_PERIOD = 0x4, HPET_CONFIG = 0x10, HPET_COUNTER = 0xf0, HPET_COUNTER_HIGH = 0xf4 };
enum { PORT_PIC = 0x20, PORT_PIC2 = 0xa0, PORT_RTC = 0x70, PORT_KEYBOARD = 0x64, PORT_SERIAL = 0x3f8, PORT_PM_TIMER = 0x608, PORT_RESET = 0xcf9 };
enum { KEYBOARD_RESET = 0xfe, RESET_CPU = 4 };

static uint64_t now(kpl_machine *m) { return m->instrs + m->extra; }

static uint64_t read_device(uc_engine *uc, uint64_t at, unsigned size, void *user)
{
	kpl_cpu *c = running(user);

	if (at - LAPIC < DEVICE_SIZE)
		return kpl_apic_read(c, at - LAPIC);
	if (at - HPET < DEVICE_SIZE) {
		uint64_t ticks = c->m->hpet_base + now(c->m) / 10; /* 100 MHz */
		switch (at - HPET) {
		case HPET_CAPABILITIES:
			return size == 8 ? 0x009896808086a201ull : 0x8086a201;
		case HPET_PERIOD:
			return 10000000; /* femtoseconds */
		case HPET_CONFIG:
			return 1;
		case HPET_COUNTER:
			return size == 8 ? ticks : (uint32_t)ticks;
		case HPET_COUNTER_HIGH:
			return ticks >> 32;
		}
	}
	return 0;
}

static void write_device(uc_engine *uc, uint64_t at, unsigned size, uint64_t v, void *user)
{
	if (at - LAPIC < DEVICE_SIZE)
		kpl_apic_write(running(user), at - LAPIC, v);
}

uint32_t kpl_port_in(kpl_cpu *c, uint32_t port, int size)
{
	switch (port) {
	case PORT_PM_TIMER:
		return (c->m->pm_base + (uint64_t)((unsigned __int128)now(c->m) * 3579545 / 1000000000)) & 0xffffff;
	case PORT_SERIAL + 5: /* line status: ready to send */
		return 0x60;
	case PORT_KEYBOARD: /* nothing to be read, nothing that waits to be taken */
	case PORT_PIC:
	case PORT_PIC2:
	case PORT_RTC + 1:
	case PORT_SERIAL:
	case PORT_SERIAL + 1:
	case PORT_SERIAL + 2:
	case PORT_SERIAL + 6:
		return 0;
	}
	return size == 4 ? 0xffffffff : size == 2 ? 0xffff : 0xff;
}

/* Returns 1 if the guest has reset the machine: by the keyboard controller's pin, or by
 * the chipset's register. */
int kpl_port_out(kpl_cpu *c, uint32_t port, int size, uint32_t value)
{
	if (port == PORT_SERIAL && size == 1)
		kpl_console_put(c->m, value);
	return (port == PORT_KEYBOARD && (value & 0xff) == KEYBOARD_RESET) || (port == PORT_RESET && size == 1 && value & RESET_CPU);
}

enum { MSR_TSC = 0x10, MSR_APIC_BASE = 0x1b, MSR_TSC_DEADLINE = 0x6e0, MSR_X2APIC = 0x800, MSR_X2APIC_END = 0x840,
       MSR_X2APIC_ICR = 0x830, MSR_X2APIC_SELF = 0x83f, MSR_X2APIC_ID = 0x802 };
#define MSR_EFER 0xc0000080u
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_FMASK 0xc0000084u
#define MSR_FS_BASE 0xc0000100u
#define MSR_TSC_AUX 0xc0000103u

/* The engine has it. */
static int engines_msr(uint32_t msr)
{
	return msr == MSR_EFER || (msr >= MSR_STAR && msr <= MSR_FMASK) || (msr >= MSR_FS_BASE && msr <= MSR_TSC_AUX) ||
	       (msr >= 0x174 && msr <= 0x176) || msr == 0x277;
}

void kpl_set_msr(kpl_cpu *c, uint32_t msr, uint64_t v)
{
	uc_x86_msr r = { msr, v };

	switch (msr) {
	case MSR_STAR:
		c->star = v;
		break;
	case MSR_LSTAR:
		c->lstar = v;
		break;
	case MSR_FMASK:
		c->fmask = v;
		break;
	case MSR_TSC_DEADLINE:
		kpl_apic_deadline(c, v);
		return;
	case MSR_X2APIC_ICR:
		kpl_apic_send(c, v);
		return;
	case MSR_X2APIC_SELF:
		kpl_apic_raise(&c->apic, v & 0xff);
		kpl_aim(c->m);
		return;
	}
	if (msr >= MSR_X2APIC && msr < MSR_X2APIC_END)
		kpl_apic_write(c, (msr - MSR_X2APIC) * 16, v);
	else if (engines_msr(msr))
		uc_reg_write(c->uc, UC_X86_REG_MSR, &r);
}

uint64_t kpl_msr(kpl_cpu *c, uint32_t msr)
{
	uc_x86_msr r = { msr, 0 };

	switch (msr) {
	case MSR_TSC:
		return kpl_tsc(c->m);
	case MSR_APIC_BASE:
		return 0xfee00800 | (c->n == 0) << 8;
	case MSR_X2APIC_ID:
		return c->apic.id;
	}
	if (msr >= MSR_X2APIC && msr < MSR_X2APIC_END)
		return kpl_apic_read(c, (msr - MSR_X2APIC) * 16);
	if (engines_msr(msr))
		uc_reg_read(c->uc, UC_X86_REG_MSR, &r);
	return r.value;
}

/* Instructions that the engine would answer from the host's clock, or not at all.
 * Each gets a hook of its own when the block that has it is first translated. */

enum { RDTSC, RDTSCP, RDMSR, WRMSR, VMCALL, MOV_FROM_DR, MOV_TO_DR, INVPCID, N_SPECIAL };

/* An instruction of those. */
struct special {
	int what, length;
	uint8_t modrm, rex;
};

static int special_at(kpl_machine *m, uint64_t at, struct special *s)
{
	static const struct {
		uint8_t n, b[4];
	} table[] = {
		[RDTSC] = { 2, { 0x0f, 0x31 } },
		[RDTSCP] = { 3, { 0x0f, 0x01, 0xf9 } },
		[RDMSR] = { 2, { 0x0f, 0x32 } },
		[WRMSR] = { 2, { 0x0f, 0x30 } },
		[VMCALL] = { 3, { 0x0f, 0x01, 0xc1 } },
		[MOV_FROM_DR] = { 2, { 0x0f, 0x21 } },
		[MOV_TO_DR] = { 2, { 0x0f, 0x23 } },
		[INVPCID] = { 4, { 0x66, 0x0f, 0x38, 0x82 } },
	};
	struct text t = { .va = at };
	uint8_t bytes[6], *b = bytes;
	int n = 0;

	*s = (struct special){ 0 };
	while (n < (int)sizeof bytes && next_byte(m, &t, &b[n]))
		n++;
	if (n && (*b & 0xf0) == 0x40) {
		s->rex = *b++;
		n--;
		s->length = 1;
	}
	for (; s->what < N_SPECIAL; s->what++)
		if (n >= table[s->what].n && !memcmp(b, table[s->what].b, table[s->what].n))
			break;
	if (s->what == N_SPECIAL)
		return 0;
	s->length += table[s->what].n;
	if (s->what < MOV_FROM_DR)
		return 1;
	if (n == table[s->what].n)
		return 0;
	s->modrm = b[table[s->what].n];
	s->length++;
	if (s->what == INVPCID) { /* and its operand: (reg), disp8 or disp32 */
		int mod = s->modrm >> 6, rm = s->modrm & 7;
		s->length += (rm == 4 && mod != 3) + (mod == 1 ? 1 : mod == 2 || (!mod && rm == 5) ? 4 : 0);
		return 1;
	}
	return !(s->rex & 4); /* there are no more than eight debug registers */
}

static void set_pair(kpl_cpu *c, uint64_t v)
{
	uint64_t low = (uint32_t)v, high = v >> 32;

	uc_reg_write(c->uc, UC_X86_REG_RAX, &low);
	uc_reg_write(c->uc, UC_X86_REG_RDX, &high);
}

static void special(kpl_cpu *c, uint64_t at)
{
	uc_engine *uc = c->uc;
	uint64_t a = 0, d = 0, r = 0, next;
	uint16_t cs = 0;
	struct special s;

	if (!special_at(c->m, at, &s) || (c->reason && s.what != MOV_FROM_DR && s.what != MOV_TO_DR))
		return; /* of the moves, the engine's own would go wrong */
	uc_reg_read(uc, UC_X86_REG_CS, &cs);
	if (cs & 3 && s.what != RDTSC && s.what != RDTSCP)
		return; /* user mode may not: the engine says so */
	uc_reg_read(uc, UC_X86_REG_RCX, &r);
	switch (s.what) {
	case RDTSCP:
		a = kpl_msr(c, MSR_TSC_AUX);
		uc_reg_write(uc, UC_X86_REG_RCX, &a);
		/* fall through */
	case RDTSC:
		set_pair(c, kpl_tsc(c->m));
		break;
	case RDMSR:
		set_pair(c, kpl_msr(c, r));
		break;
	case WRMSR:
		uc_reg_read(uc, UC_X86_REG_RAX, &a);
		uc_reg_read(uc, UC_X86_REG_RDX, &d);
		kpl_set_msr(c, r, (uint32_t)a | d << 32);
		break;
	case VMCALL:
		a = -1000; /* KVM_ENOSYS */
		uc_reg_write(uc, UC_X86_REG_RAX, &a);
		break;
	case MOV_FROM_DR:
	case MOV_TO_DR:
		if (!kpl_debug_move(c, at, s.what == MOV_TO_DR, s.modrm >> 3 & 7, (s.modrm & 7) | (s.rex & 1) << 3))
			return;
		break;
	case INVPCID:
		kpl_cpu_flush_tlb(c);
		break;
	}
	next = at + s.length;
	uc_reg_write(uc, UC_X86_REG_RIP, &next);
}

void kpl_hook_instruction(kpl_cpu *c, uint64_t at)
{
	kpl_add_own(c, at, special);
}

int kpl_special(kpl_machine *m, uint64_t at)
{
	struct special s;
	return special_at(m, at, &s);
}

static uint32_t on_in(uc_engine *uc, uint32_t port, int size, void *user)
{
	return kpl_port_in(running(user), port, size);
}

int kpl_add_devices(kpl_cpu *c)
{
	uc_hook h;
	uc_err e;

	(e = uc_mmio_map(c->uc, KPL_DEVICES, KPL_DEVICES_END - KPL_DEVICES, read_device, c, write_device, c)) ||
		(e = uc_hook_add(c->uc, &h, UC_HOOK_INSN, on_in, c, 1, 0, UC_X86_INS_IN));
	return e;
}
