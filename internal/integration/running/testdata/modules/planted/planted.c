// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module with a kprobe and a kretprobe. Parameters: forgets, its end leaves the kprobe; at, the kprobe's offset; misses, a
 * second kprobe is on a function that the handler of the first one calls; leaks, it does not free its memory.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

static int hits;
static int forgets, at, misses, leaks;
module_param(forgets, int, 0);
module_param(at, int, 0);
module_param(misses, int, 0);
module_param(leaks, int, 0);

static void *slab, *pages;
static int __percpu *counters;

static int before(struct kprobe *p, struct pt_regs *regs)
{
	int n;

	hits++;
	return misses ? kstrtoint("12", 10, &n) : 0;
}

static int called(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static int after(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	return 0;
}

static struct kprobe entry = { .symbol_name = "vfs_mkdir", .pre_handler = before };
static struct kprobe callee = { .symbol_name = "kstrtoint", .pre_handler = called };
static struct kretprobe end = { .kp.symbol_name = "vfs_rmdir", .handler = after, .maxactive = 20 };

static int __init planted_init(void)
{
	int err;

	slab = kmalloc(64, GFP_KERNEL);
	pages = vmalloc(5000);
	counters = alloc_percpu(int);
	entry.offset = at;
	err = register_kprobe(&entry);
	if (err)
		return err;
	if (misses)
		register_kprobe(&callee);
	err = register_kretprobe(&end);
	if (err)
		unregister_kprobe(&entry);
	return err;
}

static void __exit planted_exit(void)
{
	unregister_kretprobe(&end);
	if (misses)
		unregister_kprobe(&callee);
	if (!forgets)
		unregister_kprobe(&entry);
	if (!leaks) {
		kfree(slab);
		vfree(pages);
		free_percpu(counters);
	}
	pr_info("planted: %d hits\n", hits);
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_LICENSE("GPL");
