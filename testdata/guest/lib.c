// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small library: the functions that a first look at kprobes calls. The
 * signatures are the kernel's, so the same command line works on a real image.
 */

noinline size_t strlen(const char *s)
{
	const char *p = s;

	while (*p)
		p++;
	return p - s;
}

noinline size_t strnlen(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i])
		i++;
	return i;
}

noinline int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		;
	if (*a == *b)
		return 0;
	return (u8)*a < (u8)*b ? -1 : 1;
}

noinline int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *p = a, *q = b;

	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}

noinline char *strncpy(char *d, const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		d[i] = *s;
		if (*s)
			s++;
	}
	return d;
}

noinline char *strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)s;
}

/* Greatest common divisor, by halving and subtracting. */
noinline u64 gcd(u64 a, u64 b)
{
	u64 t = a | b;

	if (!a || !b)
		return t;
	b >>= __builtin_ctzl(b);
	for (;;) {
		a >>= __builtin_ctzl(a);
		if (a == b)
			return a << __builtin_ctzl(t);
		if (a < b) {
			u64 s = a;

			a = b;
			b = s;
		}
		a -= b;
	}
}

noinline u32 hweight32(u32 w)
{
	u32 n = 0;

	for (; w; w &= w - 1)
		n++;
	return n;
}

/* CRC-32, bit-reversed polynomial, four bits at a time, start value as given. */
#define CRC_S(c) ((c) & 1 ? ((c) >> 1) ^ 0xedb88320u : (c) >> 1)
#define CRC_N(i) CRC_S(CRC_S(CRC_S(CRC_S((u32)(i)))))
static const u32 crc32table_le[16] = {
	CRC_N(0), CRC_N(1), CRC_N(2), CRC_N(3), CRC_N(4), CRC_N(5), CRC_N(6), CRC_N(7),
	CRC_N(8), CRC_N(9), CRC_N(10), CRC_N(11), CRC_N(12), CRC_N(13), CRC_N(14), CRC_N(15),
};

noinline u32 crc32_le(u32 crc, unsigned char const *p, size_t len)
{
	while (len--) {
		crc ^= *p++;
		crc = (crc >> 4) ^ crc32table_le[crc & 15];
		crc = (crc >> 4) ^ crc32table_le[crc & 15];
	}
	return crc;
}

/* One conversion of vsnprintf: where output goes and what was asked for. */
struct spec {
	char *out, *end;
	int width, base;
	bool zero, left, upper, alt, sign;
};

static noinline char *put_char(char *out, char *end, char c)
{
	if (out < end)
		*out = c;
	return out + 1;
}

static noinline char *put_string(struct spec *s, const char *str)
{
	size_t len;
	int pad;

	if ((u64)str < 4096)
		str = "(null)";
	len = strlen(str);
	pad = s->width - (int)len;
	while (!s->left && pad-- > 0)
		s->out = put_char(s->out, s->end, ' ');
	while (*str)
		s->out = put_char(s->out, s->end, *str++);
	while (s->left && pad-- > 0)
		s->out = put_char(s->out, s->end, ' ');
	return s->out;
}

static noinline char *put_number(struct spec *s, u64 v)
{
	const char *digits = s->upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char tmp[24];
	int n = 0, pad;
	bool neg = s->sign && (s64)v < 0;

	if (neg)
		v = -v;
	do {
		tmp[n++] = digits[v % s->base];
		v /= s->base;
	} while (v);
	pad = s->width - n - neg - (s->alt ? 2 : 0);
	while (!s->left && !s->zero && pad-- > 0)
		s->out = put_char(s->out, s->end, ' ');
	if (neg)
		s->out = put_char(s->out, s->end, '-');
	if (s->alt) {
		s->out = put_char(s->out, s->end, '0');
		s->out = put_char(s->out, s->end, 'x');
	}
	while (!s->left && s->zero && pad-- > 0)
		s->out = put_char(s->out, s->end, '0');
	while (n)
		s->out = put_char(s->out, s->end, tmp[--n]);
	while (s->left && pad-- > 0)
		s->out = put_char(s->out, s->end, ' ');
	return s->out;
}

/*
 * %c %s %d %i %u %x %X %o %p %%, with flags 0 - #, a width and l ll z h hh.
 * %p prints the address itself, in sixteen digits.
 */
noinline int vsnprintf(char *buf, size_t size, const char *fmt, __builtin_va_list ap)
{
	struct spec s = { .out = buf, .end = buf + size };
	int len;
	u64 v;

	if ((s64)size < 0)
		return 0;
	if (s.end < buf)
		s.end = (char *)-1;
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			s.out = put_char(s.out, s.end, *fmt);
			continue;
		}
		s.width = 0;
		s.base = 10;
		s.zero = s.left = s.upper = s.alt = s.sign = false;
		len = 4;
		for (fmt++; *fmt == '0' || *fmt == '-' || *fmt == '#'; fmt++) {
			s.zero |= *fmt == '0';
			s.left |= *fmt == '-';
			s.alt |= *fmt == '#';
		}
		for (; *fmt >= '0' && *fmt <= '9'; fmt++)
			s.width = s.width * 10 + *fmt - '0';
		for (; *fmt == 'l' || *fmt == 'z' || *fmt == 'h'; fmt++)
			len = *fmt == 'h' ? len / 2 : 8;
		switch (*fmt) {
		case 0:
			goto done;
		case 'c':
			s.out = put_char(s.out, s.end, (char)__builtin_va_arg(ap, int));
			continue;
		case 's':
			s.out = put_string(&s, __builtin_va_arg(ap, const char *));
			continue;
		case 'p':
			s.base = 16;
			s.width = 16;
			s.zero = true;
			s.alt = false;
			s.out = put_number(&s, __builtin_va_arg(ap, u64));
			continue;
		case 'd':
		case 'i':
			s.sign = true;
			s.alt = false;
			break;
		case 'u':
			s.alt = false;
			break;
		case 'o':
			s.base = 8;
			s.alt = false;
			break;
		case 'X':
			s.upper = true;
			/* fall through */
		case 'x':
			s.base = 16;
			break;
		default:
			s.out = put_char(s.out, s.end, *fmt);
			continue;
		}
		v = __builtin_va_arg(ap, u64);
		if (len == 4)
			v = s.sign ? (u64)(s64)(s32)v : (u32)v;
		else if (len == 2)
			v = s.sign ? (u64)(s64)(s16)v : (u16)v;
		else if (len == 1)
			v = s.sign ? (u64)(s64)(s8)v : (u8)v;
		s.out = put_number(&s, v);
	}
done:
	if (size)
		*(s.out < s.end ? s.out : s.end - 1) = 0;
	return s.out - buf;
}

noinline int snprintf(char *buf, size_t size, const char *fmt, ...)
{
	__builtin_va_list ap;
	int n;

	__builtin_va_start(ap, fmt);
	n = vsnprintf(buf, size, fmt, ap);
	__builtin_va_end(ap);
	return n;
}

noinline int kstrtoull(const char *s, unsigned int base, unsigned long long *res)
{
	unsigned long long v = 0;
	int any = 0;

	if (base == 0) {
		base = 10;
		if (s[0] == '0')
			base = (s[1] | 32) == 'x' ? 16 : 8;
	}
	if (base == 16 && s[0] == '0' && (s[1] | 32) == 'x')
		s += 2;
	for (; *s && *s != '\n'; s++, any = 1) {
		u32 d = *s >= '0' && *s <= '9' ? *s - '0' :
			(*s | 32) >= 'a' && (*s | 32) <= 'z' ? (*s | 32) - 'a' + 10 : 99;
		if (d >= base)
			return -EINVAL;
		if (v > (~0ull - d) / base)
			return -ERANGE;
		v = v * base + d;
	}
	if (!any || (*s == '\n' && s[1]))
		return -EINVAL;
	*res = v;
	return 0;
}

typedef int (*cmp_func_t)(const void *a, const void *b);
typedef void (*swap_func_t)(void *a, void *b, int size);

static noinline void swap_bytes(void *a, void *b, int n)
{
	char *p = a, *q = b, c;

	while (n--) {
		c = *p;
		*p++ = *q;
		*q++ = c;
	}
}

/* Heap sort; swap may be NULL. */
noinline void sort(void *base, size_t num, size_t size, cmp_func_t cmp, swap_func_t swap)
{
	size_t start = num / 2, end = num, root, child;
	char *b = base;

	if (!swap)
		swap = swap_bytes;
	while (end > 1) {
		if (start) {
			start--;
		} else {
			end--;
			swap(b, b + end * size, size);
		}
		for (root = start; (child = 2 * root + 1) < end; root = child) {
			if (child + 1 < end && cmp(b + child * size, b + (child + 1) * size) < 0)
				child++;
			if (cmp(b + root * size, b + child * size) >= 0)
				break;
			swap(b + root * size, b + child * size, size);
		}
	}
}

noinline int cmp_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

noinline int cmp_u8(const void *a, const void *b)
{
	return *(const u8 *)a - *(const u8 *)b;
}

/* sort() and bsearch() with the comparison filled in, for callers without pointers to functions. */
noinline void sort_u32(u32 *base, size_t num)
{
	sort(base, num, sizeof(*base), cmp_u32, NULL);
}

noinline void *bsearch(const void *key, const void *base, size_t num, size_t size, cmp_func_t cmp)
{
	const char *b = base, *mid;
	int r;

	for (; num; num >>= 1) {
		mid = b + (num >> 1) * size;
		r = cmp(key, mid);
		if (!r)
			return (void *)mid;
		if (r > 0) {
			b = mid + size;
			num--;
		}
	}
	return NULL;
}
