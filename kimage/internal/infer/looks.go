package infer

import (
	"bytes"
	"fmt"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage/internal/opened"
)

// lookStarRefused looks for -EOPNOTSUPP in the function that expands $arg*: it is
// the only one of its errnos that came later than the function.
func lookStarRefused(e *Evidence) (on bool, why string, ok bool) {
	const name = "traceprobe_expand_meta_args"
	found := e.img.Lookup(name)
	if len(found) == 0 {
		return false, "", false
	}
	code := e.img.Bytes(found[0].Addr, int(found[0].Size))
	if code == nil {
		return false, "", false
	}
	var no [4]byte
	refused := -int32(errno.EOPNOTSUPP)
	le.PutUint32(no[:], uint32(refused))
	if bytes.Contains(code, no[:]) {
		return true, name + " returns -EOPNOTSUPP", true
	}
	return false, name + " returns no -EOPNOTSUPP", true
}

// lookLocal tells whether a function of the optimizer is static, so that the
// architecture's rules, which are in another file, cannot call it. A fix of 6.3 and of
// stable releases made two of them global.
func lookLocal(name string) func(*Evidence) (bool, string, bool) {
	return func(e *Evidence) (bool, string, bool) {
		if _, ok := e.img.SymbolAddr("arch_optimize_kprobes"); !ok {
			return false, "", false
		}
		for _, s := range e.img.Lookup(name) {
			if s.Module == "" && s.Type == 'T' {
				return false, name + " is known to all files", true
			}
		}
		return true, name + " is known in its own file only, or not at all", true
	}
}

// lookPoison looks for the newer nop in the code that writes it and that
// recognizes it.
func lookPoison(e *Evidence) (on bool, why string, ok bool) {
	for _, n := range []string{"is_endbr", "apply_seal_endbr", "poison_endbr", "apply_ibt_endbr"} {
		found := e.img.Lookup(n)
		if len(found) == 0 {
			continue
		}
		code := e.img.Bytes(found[0].Addr, int(found[0].Size))
		if bytes.Contains(code, opened.SealedNopl4) {
			return true, fmt.Sprintf("%s knows % x", n, opened.SealedNopl4), true
		}
		if code != nil {
			why, ok = fmt.Sprintf("%s knows no % x", n, opened.SealedNopl4), true
		}
	}
	return false, why, ok
}

func lookIndirectJumps(e *Evidence) (bool, string, bool) {
	if !e.banner.Since(6, 5) {
		return false, "", false
	}
	retpoline, why1, ok1 := e.option("CONFIG_MITIGATION_RETPOLINE", "CONFIG_RETPOLINE")
	if !ok1 {
		retpoline, why1, ok1 = e.symbol("__x86_indirect_thunk_rax", "__x86_indirect_thunk_array")
	}
	ibt, why2, ok2 := e.option("CONFIG_X86_KERNEL_IBT")
	if !ok2 {
		ibt, why2, ok2 = e.functionsBeginWithEndbr()
	}
	return !retpoline && !ibt, why1 + ", " + why2, ok1 && ok2
}

// lookSiteMiddle tells whether the function that searches an ftrace site has the errno
// for the middle of one.
func lookSiteMiddle(e *Evidence) (bool, string, bool) {
	const name = "arch_check_ftrace_location"
	found := e.img.Lookup(name)
	if len(found) != 1 {
		return false, "", false
	}
	code := e.img.Bytes(found[0].Addr, int(found[0].Size))
	if code == nil {
		return false, "", false
	}
	for len(code) > 0 {
		i, err := decoder.Decode(code)
		if err != nil {
			break
		}
		if i.ImmLen == 4 && i.Imm() == -int64(errno.EILSEQ) {
			return true, name + " knows EILSEQ", true
		}
		code = code[i.Length:]
	}
	return false, name + " knows no EILSEQ", true
}
