// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shapes of calls: leaves, recursion, tail calls, mutual recursion, a jump
 * table, calls through pointers and through a thunk.
 */

noinline u64 leaf(u64 x)
{
	return x + 1;
}

noinline u64 leaf2(u64 x, u64 y)
{
	return 3 * x + y;
}

/* Six arguments in registers and two on the stack. */
noinline u64 sum8(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

noinline u64 outer(u64 x)
{
	return leaf(x) + leaf2(x, leaf(x + 1));
}

/* Calls itself twice, never in tail position. */
noinline u64 fib(u64 n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

noinline u64 ackermann(u64 m, u64 n)
{
	if (!m)
		return n + 1;
	if (!n)
		return ackermann(m - 1, 1);
	return ackermann(m - 1, ackermann(m, n - 1));
}

/* Depth x, one frame each; returns x. */
noinline u64 recurse(u64 x)
{
	if (!x)
		return 0;
	x = recurse(x - 1);
	barrier();
	return x + 1;
}

u64 is_odd(u64 n);

/* Two functions that call each other, with a frame each. */
noinline u64 is_even(u64 n)
{
	u64 r = n ? is_odd(n - 1) : 1;

	barrier();
	return r;
}

noinline u64 is_odd(u64 n)
{
	u64 r = n ? is_even(n - 1) : 0;

	barrier();
	return r;
}

noinline u64 tail_c(u64 x)
{
	return x * 2;
}

/* tail_a jumps to tail_b, which jumps to tail_c: three entries, one return. */
noinline u64 tail_b(u64 x)
{
	return tail_c(x + 1);
}

noinline u64 tail_a(u64 x)
{
	return tail_b(x + 10);
}

/* Tail calls in a circle, n times round, on one frame. */
noinline u64 tail_loop_b(u64 n);

noinline u64 tail_loop_a(u64 n)
{
	return n ? tail_loop_b(n - 1) : 42;
}

noinline u64 tail_loop_b(u64 n)
{
	return n ? tail_loop_a(n - 1) : 43;
}

/* A switch that the compiler turns into jmp *table(,%rax,8). */
noinline u64 jump_table(u64 op, u64 a, u64 b)
{
	switch (op) {
	case 0: return a + b;
	case 1: return a - b;
	case 2: return a * b;
	case 3: return a & b;
	case 4: return a | b;
	case 5: return a ^ b;
	case 6: return a << (b & 63);
	case 7: return a >> (b & 63);
	case 8: return b ? a / b : 0;
	case 9: return b ? a % b : 0;
	case 10: return ~a;
	case 11: return leaf2(a, b);
	}
	return -1;
}

u64 (*const leaf_ops[])(u64) = { leaf, fib, recurse, tail_a, is_even };

/* Calls one of five functions through a pointer. */
noinline u64 call_pointer(u64 which, u64 x)
{
	u64 r = leaf_ops[which % ARRAY_SIZE(leaf_ops)](x);

	barrier();
	return r;
}

/* The same by way of a retpoline thunk. */
noinline __attribute__((indirect_branch("thunk-extern"))) u64 call_pointer_thunk(u64 which, u64 x)
{
	u64 r = leaf_ops[which % ARRAY_SIZE(leaf_ops)](x);

	barrier();
	return r;
}

/* A loop whose head lies inside what a jump at the entry would overwrite. */
noinline u64 sum_to(u64 n)
{
	u64 s = 0;

	for (; n; n--)
		s += n;
	return s;
}

/* A large frame, touched at both ends. */
noinline u64 big_frame(u64 x)
{
	volatile u64 a[128];

	a[0] = x;
	a[127] = x * 2;
	return a[0] + a[127];
}

/* Returns two words, in rax and rdx. */
struct pair {
	u64 lo, hi;
};

noinline struct pair return_pair(u64 x)
{
	struct pair p = { x, ~x };

	return p;
}

/* Narrow and signed arguments and results. */
noinline s32 return_int(s32 x)
{
	return -x;
}

noinline u8 return_byte(u8 x, s16 y)
{
	return x + y;
}

noinline void return_void(u64 *p)
{
	*p += 1;
}
