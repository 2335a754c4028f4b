// SPDX-License-Identifier: GPL-2.0-only
/* A module with a kprobe and a kretprobe; with forgets=1 its end leaves the kprobe. */
#include <linux/kprobes.h>
#include <linux/module.h>

static int hits;
static int forgets;
module_param(forgets, int, 0);

static int before(struct kprobe *p, struct pt_regs *regs)
{
	hits++;
	return 0;
}

static int after(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	return 0;
}

static struct kprobe entry = { .symbol_name = "vfs_mkdir", .pre_handler = before };
static struct kretprobe end = { .kp.symbol_name = "vfs_rmdir", .handler = after, .maxactive = 20 };

static int __init planted_init(void)
{
	int err = register_kprobe(&entry);

	if (err)
		return err;
	err = register_kretprobe(&end);
	if (err)
		unregister_kprobe(&entry);
	return err;
}

static void __exit planted_exit(void)
{
	unregister_kretprobe(&end);
	if (!forgets)
		unregister_kprobe(&entry);
	pr_info("planted: %d hits\n", hits);
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_LICENSE("GPL");
