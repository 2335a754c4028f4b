// SPDX-License-Identifier: GPL-2.0-only
/*
 * All of the guest kernel's C in one unit: one unit gives one .BTF section,
 * which the linker could not merge from several.
 */
#include "guest.h"

#include "lib.c"
#include "sched.c"
#include "calls.c"
#include "fault.c"
#include "vfs.c"
#include "namei.c"
#include "fork.c"
#include "patch.c"
#include "targets.c"
