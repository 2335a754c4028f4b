// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that goes wrong on purpose: loads that the exception table
 * catches, and faults that nothing catches.
 */

/*
 * Reads *addr. A bad address is caught by the exception table: *ok becomes 0
 * and the fallback comes back. ok may be NULL.
 */
noinline u64 ex_load(const u64 *addr, int *ok, u64 fallback)
{
	u64 v;
	int good = 1;

	asm volatile("1: mov (%2), %0\n"
		     "jmp 3f\n"
		     "2: mov %3, %0\n"
		     "xor %1, %1\n"
		     "3:\n" _ASM_EXTABLE(1b, 2b)
		     : "=&r"(v), "+r"(good)
		     : "r"(addr), "r"(fallback)
		     : "memory", "cc");
	if (ok)
		*ok = good;
	return v;
}

/* Writes v; 0, or -EFAULT on a bad address. */
noinline int ex_store(u64 *addr, u64 v)
{
	int err = 0;

	asm volatile("1: mov %1, (%2)\n"
		     "jmp 3f\n"
		     "2: mov %3, %0\n"
		     "3:\n" _ASM_EXTABLE(1b, 2b)
		     : "+r"(err)
		     : "r"(v), "r"(addr), "i"(-EFAULT)
		     : "memory");
	return err;
}

static inline __attribute__((always_inline)) u64 copy_until_fault(void *dst, const void *src, u64 n)
{
	asm volatile("1: rep movsb\n"
		     "2:\n" _ASM_EXTABLE(1b, 2b)
		     : "+c"(n), "+D"(dst), "+S"(src)
		     :
		     : "memory");
	return n;
}

/* Copies n bytes; returns how many were left when a fault stopped it. */
noinline u64 ex_copy(void *dst, const void *src, u64 n)
{
	return copy_until_fault(dst, src, n);
}

/* The kernel's own careful read: 0 or -EFAULT. */
noinline long copy_from_kernel_nofault(void *dst, const void *src, size_t size)
{
	return copy_until_fault(dst, src, size) ? -EFAULT : 0;
}

/* a / b, or fallback where the division traps. */
noinline u64 ex_divide(u64 a, u64 b, u64 fallback)
{
	u64 q = a, hi = 0;

	asm volatile("1: div %2\n"
		     "jmp 3f\n"
		     "2: mov %3, %0\n"
		     "3:\n" _ASM_EXTABLE(1b, 2b)
		     : "+a"(q), "+d"(hi)
		     : "r"(b), "r"(fallback)
		     : "cc");
	return q;
}

noinline u64 fault_null_read(void)
{
	return *(volatile u64 *)8;
}

noinline void fault_null_write(u64 v)
{
	*(volatile u64 *)0 = v;
}

noinline u64 fault_read(const volatile u64 *addr)
{
	return *addr;
}

noinline void fault_write(volatile u64 *addr, u64 v)
{
	*addr = v;
}

/* Text is read-only. */
noinline void fault_text_write(void)
{
	*(volatile u8 *)leaf = 0x90;
}

extern const char linux_banner[];

noinline void fault_rodata_write(void)
{
	*(volatile u8 *)linux_banner = 'l';
}

noinline void fault_ud2(void)
{
	asm volatile("ud2");
}

noinline u64 fault_divide(u64 a, u64 b)
{
	u64 hi = 0;

	asm volatile("div %2" : "+a"(a), "+d"(hi) : "r"(b) : "cc");
	return a;
}

noinline u64 fault_noncanonical(void)
{
	return *(volatile u64 *)0x8000000000000000ul;
}

/* An int3 that no probe has placed. */
noinline void fault_int3(void)
{
	asm volatile("int3");
}

noinline u64 fault_jump_null(void)
{
	u64 (*volatile f)(void) = NULL;
	u64 r = f();

	barrier();
	return r;
}

noinline u64 fault_jump(u64 (*f)(u64), u64 x)
{
	u64 r = f(x);

	barrier();
	return r;
}

/* Jumps into data, which may not be executed. */
noinline u64 fault_exec_data(void)
{
	u64 (*volatile f)(void) = (void *)&shared_counter;
	u64 r = f();

	barrier();
	return r;
}

/* Recurses until the stack ends. */
noinline u64 fault_stack_overflow(u64 depth)
{
	volatile u64 frame[32];
	u64 r;

	frame[0] = depth;
	r = fault_stack_overflow(depth + 1);
	return r + frame[0];
}

/* Faults in the middle of real work: three levels down, after side effects. */
static noinline u64 fault_deep_2(const volatile u64 *addr, u64 x)
{
	return x + *addr;
}

static noinline u64 fault_deep_1(const volatile u64 *addr, u64 x)
{
	u64 r = fault_deep_2(addr, x * 2);

	barrier();
	return r;
}

noinline u64 fault_deep(const volatile u64 *addr, u64 x)
{
	u64 r;

	shared_counter++;
	r = fault_deep_1(addr, x + 1);
	barrier();
	return r;
}

/* Never ends. */
noinline void runaway(void)
{
	for (;;)
		asm volatile("pause");
}

/* Never ends, with calls in it. */
noinline u64 runaway_calls(u64 x)
{
	for (;;)
		x = leaf(x);
	return x;
}
