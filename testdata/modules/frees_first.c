// SPDX-License-Identifier: GPL-2.0-only
/* Frees the data of its handler before it unregisters the kprobe; meanwhile the probe hits. */
#include <linux/slab.h>
#include "fault.h"

static struct counter { long hits, other[7]; } *counter;

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	counter->hits++;
	return 0;
}

static struct kprobe probe = { .symbol_name = "kstrtoint", .pre_handler = before };

static int __init fault_init(void)
{
	int err;

	counter = kzalloc(sizeof(*counter), GFP_KERNEL);
	if (!counter)
		return -ENOMEM;
	err = register_kprobe(&probe);
	if (err)
		kfree(counter);
	return err;
}

static void __exit fault_exit(void)
{
	int n = 0, err;

	kfree(counter);
	err = kstrtoint("12", 10, &n);
	unregister_kprobe(&probe);
	pr_info("%d: %d, %s\n", err, n, hits ? "hit" : "not hit");
}
