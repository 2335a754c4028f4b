// SPDX-License-Identifier: GPL-2.0-only
/* What the compiler may call. */
#include "sys.h"

void *memset(void *p, int c, u64 n)
{
	void *to = p;

	asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
	return p;
}

void *memcpy(void *p, const void *from, u64 n)
{
	void *to = p;

	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return p;
}
