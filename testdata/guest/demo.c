// SPDX-License-Identifier: GPL-2.0-only
/* The module demo: something to probe that is not part of the kernel image. */
#include "guest.h"

#define MODULE_INFO(tag, text)                                         \
	static const char __used __section(".modinfo")                 \
		__attribute__((aligned(1))) __modinfo_##tag[] = #tag "=" text

MODULE_INFO(name, "demo");
MODULE_INFO(license, "GPL v2");
MODULE_INFO(description, "functions to plant probes on");
MODULE_INFO(vermagic, "6.1.0-kprobelab SMP preempt mod_unload ");

u64 demo_tgt(u64 x);
u64 demo_tgt_nb(u64 x);
u64 demo_tgt_call(u64 x);
u64 demo_outer(u64 x);

u64 demo_data[4] = { 1, 2, 3, 4 };
u64 demo_calls;

/* With an fentry site: x + 9. */
noinline u64 demo_ft(u64 x)
{
	barrier();
	return x + 9;
}

/* With an fentry site, then instructions of 3 4 4 3 4 3 bytes: x + 7. */
noinline u64 demo_ft2(u64 x)
{
	asm volatile("mov %0, %%rax\n"
		     "add $1, %%rax\n"
		     "lea 8(%%rax), %%rdx\n"
		     "xor %%rcx, %%rcx\n"
		     "prefetchw (%%rsp)\n"
		     "mov %%rdx, %%rax\n"
		     :
		     : "r"(x)
		     : "rax", "rcx", "rdx", "memory", "cc");
	return x + 7;
}

/* Recursive, x + 1 frames: x. */
noinline u64 demo_rec(u64 x)
{
	barrier();
	if (!x)
		return 0;
	x = demo_rec(x - 1);
	barrier();
	return x + 1;
}

/* May not be probed. */
noinline u64 demo_nk(u64 x)
{
	barrier();
	return x + 3;
}
NOKPROBE_SYMBOL(demo_nk);

/* Calls a function of the kernel image. */
noinline u64 demo_prints(u64 x)
{
	demo_calls++;
	return printk("demo: %lu\n", x);
}

/* Calls them all, as one write to a test module's file would. */
noinline u64 demo_run(void)
{
	u64 sum = demo_tgt(1);

	sum += demo_tgt_nb(1);
	sum += demo_ft(1);
	sum += demo_ft2(2);
	sum += demo_rec(3);
	sum += demo_outer(2);
	sum += demo_tgt_call(3);
	sum += demo_nk(1);
	demo_calls++;
	return sum;
}

__init int demo_init(void)
{
	demo_calls = 0;
	return 0;
}
int init_module(void) __attribute__((alias("demo_init")));

__exit void demo_exit(void)
{
	demo_calls = 0;
}
void cleanup_module(void) __attribute__((alias("demo_exit")));

/* struct module, in which a kernel keeps its state; only the name is filled. */
struct module {
	u32 state;
	void *list[2];
	char name[56];
	char rest[816];
};
struct module __this_module __used __section(".gnu.linkonce.this_module") = { .name = "demo" };
