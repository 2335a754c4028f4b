/*
 * The line protocol of docs/decoder.md, for a decoder that is a C function:
 * an instruction's bytes in hex a line in; "LENGTH CLASS [TARGET] [; TEXT]" a line
 * out, length 0 for what is no instruction, the target counted from the first byte.
 * Answers are flushed when no question is waiting, so batches are fast and
 * one question at a time works.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct answer {
	unsigned length;
	const char *class;
	int has_target;
	long long target;
	char text[256];		/* mnemonic and operands where want_text is set */
};

/* Set by the argument "text": answers have the instruction's text. */
static int want_text;

/* What "speed" times; it is decode without the class where a decoder has that. */
static unsigned plain(const unsigned char *bytes, unsigned n);

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
	if (a->length && want_text && a->text[0]) {
		out = stpcpy(out, " ; ");
		for (const char *p = a->text; *p; p++)
			*out++ = *p == '\n' || *p == '\t' ? ' ' : *p;
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

static double one_pass(const unsigned char *from, const unsigned char *to)
{
	struct timespec begin, end;
	static volatile unsigned long sum;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (; from + 15 <= to; from += 15)
		sum += plain(from, 15);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}

/* The most memory in KiB; what getrusage says has the program in it that started this one. */
static long peak(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof line, f))
		sscanf(line, "VmHWM: %ld", &kib);
	return kib;
}

/*
 * With "speed PASSES": windows of 15 bytes on standard input, decoded so many times
 * over; prints nanoseconds per window, of the best pass over each piece, so that what
 * else the machine does counts little, and the KiB of memory without the windows.
 */
static int speed(int passes)
{
	size_t size = 0, room = 1 << 20;
	unsigned char *code = malloc(room);
	ssize_t got;
	double total = 0;

	while (code && (got = read(0, code + size, room - size)) > 0) {
		size += got;
		if (size == room)
			code = realloc(code, room *= 2);
	}
	if (!code || size < 15)
		return 1;
	for (size_t piece = 0; piece + 15 <= size; piece += 15 * 10000) {
		size_t end = piece + 15 * 10000 < size ? piece + 15 * 10000 : size;
		double best = 1e30;

		for (int pass = 0; pass < passes; pass++) {
			double ns = one_pass(code + piece, code + end);
			if (ns < best)
				best = ns;
		}
		total += best;
	}
	printf("%.2f %ld\n", total / (size / 15), peak() - (long)(size >> 10));
	return 0;
}

static int serve(int argc, char **argv)
{
	static char in[1 << 16], out[1 << 16];
	unsigned char bytes[16];
	unsigned digits = 0;
	char *o = out;
	ssize_t got;

	want_text = argc > 1 && !strcmp(argv[argc - 1], "text");
	if (argc > 2 && !strcmp(argv[1], "speed"))
		return speed(atoi(argv[2]));
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
				struct answer a = { .class = "-" };
				if (digits >= 2)
					decode(bytes, digits / 2, &a);
				o = put_answer(o, &a);
				digits = 0;
				if (o > out + sizeof out - 512) {
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
