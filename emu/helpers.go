//go:build unicorn && cgo && linux && amd64

package emu

/*
#cgo LDFLAGS: -Wl,--wrap=helper_pcmpestri_xmm_x86_64 -Wl,--wrap=helper_pcmpestrm_xmm_x86_64
#cgo LDFLAGS: -Wl,--wrap=helper_pcmpistri_xmm_x86_64 -Wl,--wrap=helper_pcmpistrm_xmm_x86_64
#include <stdint.h>
*/
import "C"

import (
	"unsafe"

	"kprobelab/internal/pcmpstr"
)

// kplCompareStrings computes the string comparisons of SSE4.2. The helpers in shim_helpers.c
// call it in place of the engine's own.
//
//export kplCompareStrings
func kplCompareStrings(first, second unsafe.Pointer, imm C.uint32_t, explicit C.int, la, lb C.int64_t, index *C.uint64_t, mask unsafe.Pointer, flags *C.uint64_t) {
	a, b := (*pcmpstr.Vector)(first), (*pcmpstr.Vector)(second)
	ctrl := byte(imm)
	na, nb := pcmpstr.Implicit(a, ctrl), pcmpstr.Implicit(b, ctrl)
	if explicit != 0 {
		na, nb = pcmpstr.Explicit(int64(la), ctrl), pcmpstr.Explicit(int64(lb), ctrl)
	}
	r := pcmpstr.Compare(a, b, na, nb, ctrl)
	*index, *(*pcmpstr.Vector)(mask), *flags = C.uint64_t(r.Index()), r.Mask(), C.uint64_t(r.Flags)
}
