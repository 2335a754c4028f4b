package stap

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
)

func memory() {
	// read fetches a string up to its NUL.
	read := func(s System, dst []byte, addr uint64, room int, user bool) ([]byte, bool) {
		from := len(dst)
		for len(dst)-from < room {
			at := addr + uint64(len(dst)-from)
			n := min(room-(len(dst)-from), 32, 4096-int(at&4095))
			part := dst[len(dst) : len(dst)+n]
			if !s.Read(at, part, user) {
				return dst[:from], false
			}
			if i := bytes.IndexByte(part, 0); i >= 0 {
				return dst[:len(dst)+i], true
			}
			dst = dst[:len(dst)+n]
		}
		return dst, true
	}
	textual("__string_quoted(long)", "a string of the kernel's or else of the program's in quotes", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
		for _, user := range []bool{false, true} {
			if b, ok := read(s, make([]byte, 0, 2*t.StringSize()), uint64(a.Int[0]), t.StringSize()-1, user); ok {
				return (&printing{size: t.StringSize(), quoted: true}).text(dst, b)
			}
		}
		t.Fail(a.Near, copyFault(uint64(a.Int[0]), true))
		return dst
	})
	for _, kind := range []struct {
		name string
		user bool
	}{{"kernel", false}, {"user", true}} {
		user := kind.user
		of := "the " + kind.name + "'s memory"
		fetch := func(s System, t *script.Thread, a *script.Args, dst []byte, n int64, otherwise []byte) []byte {
			room := int64(t.StringSize() - 1)
			if n >= 0 {
				room = min(room, n)
			}
			out, ok := read(s, dst, uint64(a.Int[0]), int(room), user)
			if !ok {
				if otherwise == nil {
					t.Fail(a.Near, copyFault(uint64(a.Int[0]), user))
				}
				return append(dst, otherwise...)
			}
			return out
		}
		textual(kind.name+"_string(long, string)", "a string in "+of+"; where it cannot be read the second argument, or an error", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			if bytes.Equal(a.Text[1], noDefault) {
				return fetch(s, t, a, dst, -1, nil)
			}
			return fetch(s, t, a, dst, -1, a.Text[1])
		}, script.Text(noDefault))
		textual(kind.name+"_string2(long, string)", "the same", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			return fetch(s, t, a, dst, -1, a.Text[1])
		})
		textual(kind.name+"_string_n(long, long)", "so many characters of it at most", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			return fetch(s, t, a, dst, a.Int[1], nil)
		})
		if user {
			textual("user_string_n2(long, long, string)", "the same, with what it is where it cannot be read", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
				return fetch(s, t, a, dst, a.Int[1], a.Text[2])
			})
			textual("user_string_warn(long)", "the same; a warning and nothing where it cannot be read", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
				out, ok := read(s, dst, uint64(a.Int[0]), t.StringSize()-1, user)
				if !ok {
					t.Flush()
					s.Log("WARNING: " + copyFault(uint64(a.Int[0]), user))
				}
				return out
			})
		}
		quotedString := func(s System, t *script.Thread, a *script.Args, dst []byte, n int64) []byte {
			room := t.StringSize() - 1
			if n >= 0 {
				room = int(min(int64(room), n))
			}
			b, ok := read(s, make([]byte, 0, 2*t.StringSize()), uint64(a.Int[0]), room, user)
			if !ok {
				return hexText(dst, uint64(a.Int[0]))
			}
			return (&printing{size: t.StringSize(), quoted: true}).text(dst, b)
		}
		textual(kind.name+"_string_quoted(long)", "a string in quotes, its address where it cannot be read", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			return quotedString(s, t, a, dst, -1)
		})
		if user {
			textual("user_string_n_quoted(long, long)", "so many characters of it at most", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
				return quotedString(s, t, a, dst, max(a.Int[1], 0))
			})
		}
		var otherwise []script.Expr // the kernel's need not say how many are wanted
		if !user {
			otherwise = []script.Expr{script.Number(bounded.StapString)}
		}
		textual(kind.name+"_buffer_quoted(long, long, long)", "bytes in quotes: where, how many there are, how long the text may be", func(s System, t *script.Thread, a *script.Args, dst []byte) []byte {
			p := printing{size: t.StringSize(), most: a.Int[1], out: a.Int[2], quoted: true, buffer: true}
			if a.Int[2] <= 0 {
				return dst
			}
			// No byte is written as less than one; of UTF-8 there may be four.
			buf := make([]byte, min(p.room(p.most), p.room(p.out)+utf8.UTFMax))
			if !s.Read(uint64(a.Int[0]), buf, user) {
				text := hexText(nil, uint64(a.Int[0]))
				return append(dst, text[:min(len(text), int(min(a.Int[2], int64(t.StringSize())))-1)]...)
			}
			return p.text(dst, buf)
		}, otherwise...)
		for _, w := range words {
			if w.users && !user || w.kernels && user {
				continue
			}
			num(kind.name+"_"+w.name+"(long)", fmt.Sprintf("%d bytes in %s as a number", w.size, of), func(s System, t *script.Thread, a *script.Args) int64 {
				var b [8]byte
				if !s.Read(uint64(a.Int[0]), b[:w.size], user) {
					if user {
						return 0
					}
					t.Failf(a.Near, "kernel %s copy fault at %#x"+manual, w.name, uint64(a.Int[0]))
				}
				v := littleEndian(b[:w.size])
				if w.signed {
					shift := 64 - 8*w.size
					return int64(v<<shift) >> shift
				}
				return int64(v)
			})
		}
	}
}
