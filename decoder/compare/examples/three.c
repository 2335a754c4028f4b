/* The line protocol in C, without a header: a decoder that knows three instructions. */
int getchar(void);
int printf(const char *format, ...);
int fflush(void *stream);

static int digit(int c)
{
	return c <= '9' ? c - '0' : (c | 32) - 'a' + 10;
}

int main(void)
{
	unsigned char b[15];
	int c, n = 0;

	while ((c = getchar()) >= 0) {
		if (c != '\n') {
			if (n < 30)
				b[n / 2] = n % 2 ? b[n / 2] << 4 | digit(c) : digit(c);
			n++;
			continue;
		}
		if (b[0] == 0x90)
			printf("1 none\n");
		else if (b[0] == 0xC3)
			printf("1 ret\n");
		else if (b[0] == 0xEB && n >= 4)
			printf("2 jmp %d\n", 2 + b[1]);	/* wrong: a displacement has a sign */
		else
			printf("0 -\n");
		fflush(0);
		n = 0;
	}
	return 0;
}
