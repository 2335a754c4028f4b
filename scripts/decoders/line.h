/*
 * The line protocol of docs/decoder.md, for a decoder that is a C function:
 * an instruction's bytes in hex a line in; "LENGTH CLASS [TARGET]" a line out,
 * length 0 for what is no instruction, the target counted from the first byte.
 * Answers are flushed when no question is waiting, so batches are fast and
 * one question at a time works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct answer {
	unsigned length;
	const char *class;
	int has_target;
	long long target;
};

static void decode(const unsigned char *bytes, unsigned n, struct answer *a);

static signed char nibble[256];

static char *put_number(char *out, unsigned long long v)
{
	char digits[24];
	int n = 0;

	do {
		digits[n++] = '0' + v % 10;
	} while (v /= 10);
	while (n)
		*out++ = digits[--n];
	return out;
}

static char *put_answer(char *out, const struct answer *a)
{
	out = put_number(out, a->length);
	*out++ = ' ';
	out = stpcpy(out, a->length ? a->class : "-");
	if (a->length && a->has_target) {
		*out++ = ' ';
		if (a->target < 0)
			*out++ = '-';
		out = put_number(out, a->target < 0 ? -(unsigned long long)a->target : (unsigned long long)a->target);
	}
	*out++ = '\n';
	return out;
}

static void flush(const char *from, const char *to)
{
	while (from < to) {
		ssize_t n = write(1, from, to - from);
		if (n <= 0)
			exit(1);
		from += n;
	}
}

static int serve(void)
{
	static char in[1 << 16], out[1 << 16];
	unsigned char bytes[16];
	unsigned digits = 0;
	char *o = out;
	ssize_t got;

	memset(nibble, -1, sizeof nibble);
	for (int i = 0; i < 10; i++)
		nibble['0' + i] = i;
	for (int i = 0; i < 6; i++)
		nibble['a' + i] = nibble['A' + i] = 10 + i;
	while ((got = read(0, in, sizeof in)) > 0) {
		for (char *p = in; p < in + got; p++) {
			int v = nibble[(unsigned char)*p];
			if (v >= 0 && digits < 30) {
				unsigned char *b = &bytes[digits / 2];
				*b = digits & 1 ? *b << 4 | v : v;
				digits++;
			} else if (*p == '\n') {
				struct answer a = { 0, "-", 0, 0 };
				if (digits >= 2)
					decode(bytes, digits / 2, &a);
				o = put_answer(o, &a);
				digits = 0;
				if (o > out + sizeof out - 128) {
					flush(out, o);
					o = out;
				}
			}
		}
		flush(out, o);
		o = out;
	}
	return 0;
}
