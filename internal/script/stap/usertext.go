package stap

import (
	"fmt"
	"net/netip"
	"strings"

	"kprobelab/internal/script"
)

// structures has the functions that print a structure in a program's memory, by their signatures. They print NULL for the address
// 0, and the address itself if it cannot be read. Times have the layout of 64-bit programs.
var structures = map[string]struct {
	size int64 // of one structure in bytes; a second parameter is the number of structures
	text func(dst, b []byte) []byte
}{
	"_struct_timespec_u(long, long)": {16, timespecText},
	"_struct_timeval_u(long, long)":  {16, timevalText},
	"_struct_itimerspec_u(long)":     {32, intervalText},
	"_struct_itimerval_u(long)":      {32, intervalText},
	"_struct_rlimit_u(long)": {16, func(dst, b []byte) []byte {
		return fmt.Appendf(dst, "[%d,%d]", int64(littleEndian(b[:8])), int64(littleEndian(b[8:])))
	}},
	"_stp_sigset_u(long)":       {8, signalsText},
	"_struct_sigaction_u(long)": {32, actionText},
	"_struct_timezone_u(long)": {8, func(dst, b []byte) []byte {
		return fmt.Appendf(dst, "[%d, %d]", int32(littleEndian(b[:4])), int32(littleEndian(b[4:])))
	}},
}

// mostOf bounds how many structures an array may have.
const mostOf = 2

func structureText(s System, size, n int64, a *script.Args, dst []byte, text func(dst, b []byte) []byte) []byte {
	at := uint64(a.Int[0])
	var whole [mostOf * 32]byte
	switch {
	case at == 0, n < 1, n > mostOf:
		return append(dst, "NULL"...)
	case !s.Read(at, whole[:size*n], true):
		return hexText(dst, at)
	}
	for b := whole[:size*n]; len(b) > 0; b = b[size:] {
		dst = text(dst, b[:size])
	}
	return dst
}

// The nanoseconds that are none (utimensat(2)).
const utimeNow, utimeOmit = 1<<30 - 1, 1<<30 - 2

func timespecText(dst, b []byte) []byte {
	switch ns := int64(littleEndian(b[8:])); ns {
	case utimeNow:
		return append(dst, "[UTIME_NOW]"...)
	case utimeOmit:
		return append(dst, "[UTIME_OMIT]"...)
	default:
		return fmt.Appendf(dst, "[%d.%09d]", int64(littleEndian(b[:8])), ns)
	}
}

func timevalText(dst, b []byte) []byte {
	return fmt.Appendf(dst, "[%d.%06d]", int64(littleEndian(b[:8])), int64(littleEndian(b[8:])))
}

func intervalText(dst, b []byte) []byte {
	var n [4]int32
	for i := range n {
		n[i] = int32(littleEndian(b[8*i : 8*i+8]))
	}
	return fmt.Appendf(dst, "[%d.%06d,%d.%06d]", n[0], n[1], n[2], n[3])
}

// signalsText are the signals of a set that have names.
func signalsText(dst, b []byte) []byte {
	from, set := len(dst), littleEndian(b)
	for _, one := range flagSets["_signal_name"].names {
		if one.bits < 1 || one.bits > 64 || set>>(one.bits-1)&1 == 0 {
			continue
		}
		if len(dst) == from {
			dst = append(dst, '[')
		} else {
			dst = append(dst, '|')
		}
		dst = append(dst, one.name...)
	}
	if len(dst) == from {
		return append(dst, "[EMPTY]"...)
	}
	return append(dst, ']')
}

// actionText is a struct sigaction as the kernel has it: handler, flags, restorer, mask.
func actionText(dst, b []byte) []byte {
	var words [4]uint64
	for i := range words {
		words[i] = littleEndian(b[8*i : 8*i+8])
	}
	handler := int64(words[0])
	dst = flagParts["sa_handler"].text(dst, handler)
	if flagParts["sa_handler"].name(handler) != "" {
		return dst
	}
	dst = flagParts["sa_flags"].text(append(dst, ", "...), int64(words[1]))
	dst = hexText(append(dst, ", "...), words[2])
	return signalsText(append(dst, ", "...), b[24:])
}

// longestValue is the number of bytes that are printed of an extended attribute's value.
const longestValue = 50

// attributeText prints the value of an extended attribute, without the NUL at its end.
func attributeText(s System, _ *script.Thread, a *script.Args, dst []byte) []byte {
	at, size := uint64(a.Int[0]), min(uint64(a.Int[1]), longestValue)
	var whole [longestValue]byte
	if at == 0 || size == 0 || !s.Read(at, whole[:size], true) {
		return hexText(dst, at)
	}
	b := whole[:size]
	if n := len(b); n > 1 && b[n-1] == 0 && b[n-2] >= ' ' && b[n-2] <= '~' {
		b = b[:n-1]
	}
	dst = append(dst, '"')
	for _, c := range b {
		if c >= ' ' && c <= '~' {
			dst = append(dst, c)
		} else {
			dst = fmt.Appendf(dst, `\x%02x`, c)
		}
	}
	return append(dst, '"')
}

// The families of sockets whose addresses have a form, and how long these are.
const (
	familyUnix, familyINET, familyINET6, familyNetlink, familyPacket = 1, 2, 10, 16, 17

	lengthINET, lengthINET6, lengthNetlink, lengthPacket = 16, 28, 12, 20
	longestAddress                                       = 128
)

// socketAddressText is an address of a socket in a program's memory.
func socketAddressText(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
	at, length := uint64(a.Int[0]), int(max(0, min(a.Int[1], longestAddress)))
	var whole [longestAddress]byte
	switch {
	case at == 0:
		return append(dst, "NULL"...)
	case !s.Read(at, whole[:length], true):
		return append(dst, "{...}"...)
	case length < 2:
		return fmt.Appendf(dst, "{unknown sockaddr with salen=%d}", length)
	}
	b := whole[:]
	port := uint64(b[2])<<8 | uint64(b[3])
	switch family := littleEndian(b[:2]); {
	case family == familyINET && length == lengthINET:
		return fmt.Appendf(dst, "{AF_INET, %s, %d}", netip.AddrFrom4([4]byte(b[4:8])), port)
	case family == familyINET6 && length == lengthINET6:
		return fmt.Appendf(dst, "{AF_INET6, %s, %d}", netip.AddrFrom16([16]byte(b[8:24])).StringExpanded(), port)
	case family == familyUnix && length >= 4 && b[2] == 0:
		printed := printing{size: t.StringSize(), most: int64(length - 2), buffer: true}
		return append(printed.text(append(dst, `{AF_UNIX, "\000`...), b[3:]), `"}`...)
	case family == familyUnix && length >= 4:
		b[longestAddress-1] = 0
		path, _, _ := strings.Cut(string(b[2:]), "\x00")
		return fmt.Appendf(dst, "{AF_UNIX, \"%s\"}", path)
	case family == familyNetlink && length == lengthNetlink:
		return fmt.Appendf(dst, "{AF_NETLINK, pid=%d, groups=%08x}", int32(littleEndian(b[4:8])), littleEndian(b[8:12]))
	case family == familyPacket && length == lengthPacket:
		return fmt.Appendf(dst, "{AF_PACKET, proto=%d, ind=%d, hatype=%d, pkttype=%d, halen=%d, addr=%#x}",
			littleEndian(b[2:4]), int32(littleEndian(b[4:8])), littleEndian(b[8:10]), b[10], b[11], littleEndian(b[12:20]))
	default:
		return fmt.Appendf(dst, "{unknown sockaddr with sa=%d, salen=%d}", family, length)
	}
}
