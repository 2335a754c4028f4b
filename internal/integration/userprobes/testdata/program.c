/* A program that uses much of libc, and prints what came of it. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static jmp_buf back;

static void leave(int depth)
{
	if (depth == 0)
		longjmp(back, 3);
	leave(depth - 1);
}

static void format(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, size, fmt, ap);
	va_end(ap);
}

static int classify(int c)
{
	switch (c) {
	case 'a': return 1;
	case 'b': return 5;
	case 'c': return 7;
	case 'd': return 2;
	case 'e': return 9;
	case 'f': return 4;
	default: return 0;
	}
}

static void numbers(void)
{
	int list[] = { 9, 4, 7, 1, 8, 2, 6, 3, 5, 0 }, key = 7;
	int *found;

	qsort(list, 10, sizeof(int), by_value);
	found = bsearch(&key, list, 10, sizeof(int), by_value);
	printf("%d %d %ld %lu %.3f %g\n", list[3], *found, strtol("-0x1f", 0, 16), strtoul("777", 0, 8), strtod("2.5e3", 0), atof("0.125"));
	printf("%d %ld %d %lld %.4f %.4f\n", abs(-5), labs(-6), div(17, 5).rem, lldiv(100, 7).quot, sqrt(2), floor(-2.5));
	srand(5);
	printf("%d %d %ld\n", rand(), rand(), random());
}

static void strings(void)
{
	char buf[128], *save, *copy;
	wchar_t wide[32];

	strcpy(buf, "one,two;three four");
	for (char *w = strtok_r(buf, ",; ", &save); w; w = strtok_r(0, ",; ", &save))
		printf("<%s>", w);
	format(buf, sizeof buf, "%-8s|%5d|%#x|%c|%e|%p", "left", 42, 255, 'q', 1234.5, (void *)16);
	puts(buf);
	copy = strdup(buf);
	strcat(strncpy(buf, "abcdef", 4), "");
	memmove(copy + 2, copy, 10);
	printf("%zu %d %d %s %s %td\n", strlen(copy), strcmp(buf, "abcz"), strncasecmp("ABC", "abd", 3), strchr(copy, '|'), strrchr(copy, '|'), strstr(copy, "42") - copy);
	printf("%zu %zu %s %d\n", strspn("aabbc", "ab"), strcspn("hello", "l"), strpbrk("hello", "lo"), memcmp("abc", "abd", 3));
	printf("%s %d %d\n", (char *)memchr("find me", 'm', 7), isalpha('x') != 0, toupper('y'));
	printf("%zu %zu %d\n", mbstowcs(wide, "wide text", 32), wcslen(wide), fnmatch("*.c", "prog.c", 0));
	printf("%s %s\n", strerror(ENOENT), getenv("NAME") ? getenv("NAME") : "none");
	free(copy);
}

static void memory(void)
{
	char *list[40];
	void *root = 0;

	for (int i = 0; i < 40; i++) {
		list[i] = malloc(16 << (i % 12));
		memset(list[i], i, 16);
		tsearch(list[i], &root, (int (*)(const void *, const void *))strcmp);
	}
	for (int i = 0; i < 40; i += 2)
		list[i] = realloc(list[i], 40000);
	char *zero = calloc(100, 30);
	int sum = 0;
	for (int i = 0; i < 3000; i++)
		sum += zero[i];
	for (int i = 0; i < 40; i++)
		sum += list[i][3], free(list[i]);
	free(zero);
	printf("%d\n", sum);
}

static void files(void)
{
	char line[64], name[32], *got = 0;
	size_t room = 0;
	int n = 0;
	FILE *f = fopen("/data", "r");

	if (!f) {
		perror("data");
		return;
	}
	if (fgets(line, sizeof line, f))
		printf("%s", line);
	if (fscanf(f, "%31s %d", name, &n) == 2)
		printf("%s %d\n", name, n);
	fseek(f, 0, SEEK_SET);
	while (getline(&got, &room, f) > 0)
		fputs(got, stdout);
	ungetc('x', f);
	printf("%c %ld\n", getc(f), ftell(f));
	fclose(f);
	free(got);
	sscanf("12 abc 3.5", "%d %s %*f", &n, name);
	printf("%d %s %d\n", n, name, access("/none", 0));
}

static void dates(void)
{
	struct tm tm;
	time_t t = 86400 * 365;
	char buf[64];

	gmtime_r(&t, &tm);
	strftime(buf, sizeof buf, "%Y-%m-%d %H:%M:%S %j", &tm);
	printf("%s %ld\n", buf, (long)timegm(&tm));
}

int main(int argc, char **argv)
{
	int n = setjmp(back);

	if (n == 0)
		leave(5);
	printf("%d %d %d %d\n", n, fib(12), classify(argv[0][0]) + classify('e'), argc);
	numbers();
	strings();
	memory();
	files();
	dates();
	fprintf(stderr, "done %d\n", getpid() > 0);
	fflush(stdout);
	return 9;
}
