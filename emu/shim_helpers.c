//go:build unicorn && cgo && linux && amd64

/* Helpers of the engine that compute wrongly, in ours. Translated code calls a helper for an
 * instruction; the linker puts these in the place of the engine's own (--wrap in helpers.go), so
 * that nothing else gets slower.
 *
 * The engine's string comparison of SSE4.2 knows a substring only where the whole of it fits
 * into the register. */

#include "shim_private.h"
#include "_cgo_export.h"

typedef void helper(void *env, const uint8_t *d, const uint8_t *s, uint32_t ctrl);

/* Weak: a shared library of the engine's does not show them. */
helper __real_helper_pcmpestri_xmm_x86_64 __attribute__((weak)), __real_helper_pcmpestrm_xmm_x86_64 __attribute__((weak)),
	__real_helper_pcmpistri_xmm_x86_64 __attribute__((weak)), __real_helper_pcmpistrm_xmm_x86_64 __attribute__((weak));

/* A helper gets the state of the processor, whose layout is private: which words of it are rcx,
 * xmm0 and the flags. 0 for flags: they are not known, and the engine's own helpers are used. */
static struct {
	unsigned rcx, xmm0, flags;
} word_of;

enum { STATE_WORDS = 1 << 13 };

/* The engine's own helper in an empty state shows the places: it writes its result, which is
 * known, and the flags. 1 if it wrote nothing else. */
static int places(helper *real, uint64_t result, unsigned *of, unsigned *flags)
{
	enum { CF_ZF_SF = 0xc1 };
	static uint64_t state[STATE_WORDS];
	static const uint8_t first[16] __attribute__((aligned(16))) = "a", second[16] __attribute__((aligned(16))) = "ba";
	unsigned others = 0;

	if (!real)
		return 0;
	memset(state, 0, sizeof state);
	*of = *flags = 0;
	real(state, first, second, 0); /* which of these bytes is in the first text: number 1 */
	for (unsigned i = 0; i < STATE_WORDS; i++)
		if (state[i] == result)
			*of = i;
		else if (state[i] == CF_ZF_SF)
			*flags = i;
		else
			others += state[i] != 0;
	return *of && *flags && !others;
}

void kpl_learn_helpers(void)
{
	enum { RCX = 1 }; /* of the general registers, which follow one another */
	unsigned flags, again;

	if (places(__real_helper_pcmpistri_xmm_x86_64, 1, &word_of.rcx, &flags) &&
	    places(__real_helper_pcmpistrm_xmm_x86_64, 1 << 1, &word_of.xmm0, &again) && again == flags && word_of.rcx >= RCX)
		word_of.flags = flags;
}

static void compare(uint64_t *state, const uint8_t *d, const uint8_t *s, uint32_t ctrl, int explicit, int mask, helper *real)
{
	enum { REX_W = 1 << 8 }; /* is beside the control byte */
	uint64_t index = 0, result[2];

	if (!word_of.flags) {
		real(state, d, s, ctrl);
		return;
	}
	int64_t la = state[word_of.rcx - 1], lb = state[word_of.rcx + 1]; /* rax, rdx */
	if (!(ctrl & REX_W)) {
		la = (int32_t)la;
		lb = (int32_t)lb;
	}
	void *rescue = kpl_pause_rescue();
	kplCompareStrings((void *)d, (void *)s, ctrl & 0xff, explicit, la, lb, &index, result, &state[word_of.flags]);
	kpl_go_on_rescue(rescue);
	if (mask)
		memcpy(&state[word_of.xmm0], result, sizeof result);
	else
		state[word_of.rcx] = index;
}

#define COMPARE(name, explicit, mask)                                                        \
	void __wrap_##name(void *env, const uint8_t *d, const uint8_t *s, uint32_t ctrl)     \
	{                                                                                    \
		compare(env, d, s, ctrl, explicit, mask, __real_##name);                     \
	}
COMPARE(helper_pcmpestri_xmm_x86_64, 1, 0)
COMPARE(helper_pcmpestrm_xmm_x86_64, 1, 1)
COMPARE(helper_pcmpistri_xmm_x86_64, 0, 0)
COMPARE(helper_pcmpistrm_xmm_x86_64, 0, 1)
