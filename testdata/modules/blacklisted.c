// SPDX-License-Identifier: GPL-2.0-only
/* Probes a function of the kprobes themselves, which is on the kernel's blacklist. */
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kprobe probe = { .symbol_name = "get_kprobe", .pre_handler = before };

static int __init fault_init(void)
{
	int err = register_kprobe(&probe);

	pr_info("register_kprobe: %d\n", err);
	return err;
}

static void __exit fault_exit(void)
{
	unregister_kprobe(&probe);
}
