// SPDX-License-Identifier: GPL-2.0-only
/* Returns an error from its init, with two probes planted. */
#include "fault.h"

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int after(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static struct kprobe entry = { .symbol_name = PROBED, .pre_handler = before };
static struct kretprobe end = { .kp.symbol_name = "__x64_sys_setdomainname", .handler = after, .maxactive = 4 };

static int __init fault_init(void)
{
	int err = register_kprobe(&entry);

	if (!err)
		err = register_kretprobe(&end);
	pr_info("planted: %d\n", err);
	return -ENODEV;
}

static void __exit fault_exit(void)
{
}
