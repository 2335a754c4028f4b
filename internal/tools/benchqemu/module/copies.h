/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KPROBELAB_COPIES_H
#define KPROBELAB_COPIES_H

#define COPIES		8
/* No multiple of any power of two above 64, so that no two lie alike in their pages. */
#define COPY_STRIDE	(64 * 17)

#endif
