package kimage

// Checksums and hashes choose their code by the processor: by static calls, and by
// static keys for choices that a function tests itself (lib/crypto and lib/crc for
// x86, from 6.16 on). An image has only the keys of its release.

// cryptoKeys are the keys and the flags that turn them on.
var cryptoKeys = []bootKey{
	{"have_pclmulqdq", 0, true, flag("pclmulqdq"), "checksums use carry-less multiplication"},
	{"have_vpclmul_avx512", 0, true, flag(avx512Multiplication...), "checksums use carry-less multiplication"},
	{"have_crc32", 0, true, flag("sse4_2"), "a checksum has an instruction"},
	{"have_sha256_x86", 0, true, flag("ssse3"), "the hash uses the processor's instructions (6.16)"},
	{"have_sha_ni", 0, true, flag("sha_ni"), "the hash has instructions"},
	{"have_aes", 0, true, flag("aes"), "the cipher has instructions"},
	{"have_pclmul", 0, true, flag("pclmulqdq"), "polynomials use carry-less multiplication"},
	{"have_pclmul_avx", 0, true, flag("pclmulqdq", "avx"), "polynomials use carry-less multiplication"},
	{"blake2s_use_ssse3", 0, true, flag("ssse3"), "the hash uses the processor's instructions"},
	{"blake2s_use_avx512", 0, true, flag("avx", "avx2", "avx512f", "avx512vl"), "the hash uses the processor's instructions"},
}

var avx512Multiplication = []string{"pclmulqdq", "vpclmulqdq", "avx2", "avx512bw", "avx512vl"}

// cryptoCalls are static calls with the functions to choose from. The call gets the first
// function that the image has and whose flags the processor has; without any it stays as it is.
var cryptoCalls = []struct {
	key     string
	choices []cryptoChoice
}{
	{"sha1_blocks_x86", []cryptoChoice{
		{"sha1_blocks_ni", []string{"sha_ni"}},
		{"sha1_blocks_avx2", []string{"avx", "avx2", "bmi1", "bmi2"}},
		{"sha1_blocks_avx", []string{"avx"}},
		{"sha1_blocks_ssse3", []string{"ssse3"}},
	}},
	{"sha256_blocks_x86", []cryptoChoice{
		{"sha256_blocks_ni", []string{"sha_ni"}},
		{"sha256_blocks_avx2", []string{"avx", "avx2", "bmi2"}},
		{"sha256_blocks_avx", []string{"avx"}},
		{"sha256_blocks_ssse3", []string{"ssse3"}},
		// 6.16 has no functions of the names above.
		{"sha256_ni_transform", []string{"sha_ni"}},
		{"sha256_transform_rorx", []string{"avx", "avx2", "bmi2"}},
		{"sha256_transform_avx", []string{"avx"}},
	}},
	{"sha512_blocks_x86", []cryptoChoice{
		{"sha512_blocks_avx2", []string{"avx", "avx2", "bmi2"}},
		{"sha512_blocks_avx", []string{"avx"}},
		{"sha512_blocks_ssse3", []string{"ssse3"}},
	}},
	{"crc16_msb_pclmul", crcChoices("crc16_msb")},
	{"crc32_lsb_pclmul", crcChoices("crc32_lsb")},
	{"crc64_msb_pclmul", crcChoices("crc64_msb")},
	{"crc64_lsb_pclmul", crcChoices("crc64_lsb")},
}

type cryptoChoice struct {
	fn    string
	flags []string
}

func crcChoices(crc string) []cryptoChoice {
	return []cryptoChoice{
		{crc + "_vpclmul_avx512", avx512Multiplication},
		{crc + "_vpclmul_avx2", []string{"pclmulqdq", "vpclmulqdq", "avx2"}},
	}
}

// cryptoUpdates makes the calls what boot makes them.
func (p *bootPatcher) cryptoUpdates(sc *staticCalls) {
	for _, c := range cryptoCalls {
		for _, choice := range c.choices {
			if _, ok := p.img.symbolAddr(choice.fn); ok && p.cpu.Has(choice.flags...) {
				sc.update(c.key, choice.fn)
				break
			}
		}
	}
}
