package kimage

// Places in the containers that the tests make: the x86 boot protocol, "The Real-Mode Kernel Header"; Microsoft, "PE Format";
// drivers/firmware/efi/libstub/zboot-header.S.
const (
	bzSetupSects = 0x1f1
	bzBootFlag   = 0x1fe
	bzMagic      = 0x202
	bzVersion    = 0x206
	bzXLoadFlags = 0x236
	bzPayloadLen = 0x24c
	bzSector     = 512

	peAt, peMachine, peSections, peOptional, peHeader     = 0x3c, 4, 6, 20, 24
	peSection, peVirtualSize, peRawSize, peRawAt, peAMD64 = 40, 8, 16, 20, 0x8664

	zbootAt, zbootLen, zbootPack = 8, 12, 24
)
