package decoder

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEveryRowIsDecoded: each sample of each row is an instruction of that row, has the
// row's class, is as long cut off as with other bytes after it, and is no instruction
// with a byte less.
func TestEveryRowIsDecoded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	total := 0
	for _, e := range Encodings() {
		rows := opcodesOf(e).rows
		for n := range rows {
			row := &rows[n]
			if row.form.flags&withoutMPX != 0 {
				continue // no row of Decode's processor
			}
			samples := row.samples(e, 96)
			require.NotEmpty(t, samples, "%v:%d", e, row.line)
			for _, b := range samples {
				i, err := Decode(b)
				require.NoError(t, err, "% x", b)
				require.Equal(t, []any{e, n, row.form.class, row.mnemonic}, []any{i.Encoding, i.RowNumber(), i.Class, i.Mnemonic()}, "% x", b)
				total++
				cut, err := Decode(b[:i.Length])
				require.NoError(t, err, "% x", b[:i.Length])
				require.Equal(t, i, cut)
				_, err = Decode(b[:i.Length-1])
				require.Error(t, err, "% x", b[:i.Length-1])
				other := append([]byte{}, b...)
				for at := i.Length; at < len(other); at++ {
					other[at] = byte(r.Uint32())
				}
				again, err := Decode(other)
				require.NoError(t, err)
				require.Equal(t, i, again)
				require.NotContains(t, i.Text(0), "%!", "% x", b)
			}
		}
	}
	require.Greater(t, total, 40_000)
}

// TestTemplatesTakeTheRightField: if ModRM.reg is a part of the opcode it is no vector or general
// register, and the opcode's own meaning does not depend on vvvv.
func TestTemplatesTakeTheRightField(t *testing.T) {
	for _, e := range Encodings() {
		for _, row := range opcodesOf(e).rows {
			one := row.reg&(row.reg-1) == 0
			for _, template := range row.texts {
				vvvv := false
				for _, o := range template.operands {
					if o.source == 'G' && one {
						require.Contains(t, "cns", string(o.kind), "%v:%d %s", e, row.line, row.mnemonic)
					}
					if o.source == 'R' && row.mod == 7 {
						require.Fail(t, "a register operand where there is memory alone", "%v:%d %s", e, row.line, row.mnemonic)
					}
					vvvv = vvvv || o.source == 'H'
				}
				if row.form.flags&conditional == 0 {
					require.Equal(t, row.form.flags&usesVvvv != 0, vvvv, "%v:%d %s", e, row.line, row.mnemonic)
				}
			}
		}
	}
}

// TestNoLengthIsReserved: no row of EVEX accepts L'L of 3 except as rounding.
func TestNoLengthIsReserved(t *testing.T) {
	for e := EncEvex0F; e <= EncEvex7; e++ {
		if e == EncEvex4 {
			continue // which has other fields there
		}
		for _, r := range opcodesOf(e).rows {
			const length3 = 0xFF << 24 & 0xFFFFFFFF // of selectors without b
			require.Zero(t, r.sel&length3, "%v %02x %s", e, r.opcode, r.mnemonic)
			if r.mod&7 != 0 && r.form.flags&registerOnly == 0 {
				require.Zero(t, r.sel>>32&length3, "%v %02x %s with memory", e, r.opcode, r.mnemonic)
			}
		}
	}
}

// TestTextOfEveryRowAssembles: as, if installed, assembles the text of samples of each row without
// prefixes of no effect. Extensions newer than binutils 2.40 need a newer one.
func TestTextOfEveryRowAssembles(t *testing.T) {
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skip("there is no as here")
	}
	for _, e := range []Encoding{EncPrimary, Enc0F38, Enc0F3A, EncVex0F, EncVex0F38, EncEvex0F, EncEvex0F3A} {
		t.Run(e.String(), func(t *testing.T) {
			var texts []string
			rows := opcodesOf(e).rows
			for n := range rows {
				for _, b := range rows[n].samples(e, 2) {
					i, err := Decode(b)
					require.NoError(t, err)
					text := i.Text(0)
					word, _, _ := strings.Cut(text, " ")
					if !newerThanAs[i.Extension()] && !notForAs[i.Mnemonic()] && (!PrefixWord(word) || word == "{evex}" || word == "{vex}") {
						texts = append(texts, text)
					}
				}
			}
			cmd := exec.Command(as, "--64", "-mmnemonic=att", "-o", t.TempDir()+"/a.o", "-")
			cmd.Stdin = strings.NewReader(strings.Join(texts, "\n") + "\n")
			out, _ := cmd.CombinedOutput()
			refused := map[string]string{}
			for line := range strings.Lines(string(out)) {
				if _, message, ok := strings.Cut(line, "Error: "); ok {
					refused[strings.TrimSpace(message)] = line
				}
			}
			require.Empty(t, refused, "of %d texts", len(texts))
		})
	}
}

// newerThanAs are extensions that binutils 2.40 has not.
var newerThanAs = map[string]bool{
	"APX_F": true, "AVX10_2": true, "MOVRS": true, "AMX_AVX512": true, "AMX_TF32": true, "AMX_COMPLEX": true, "AMX_FP8": true, "AMX_MOVRS": true,
	"SM4": true, "SM3": true, "SHA512": true, "AVX_VNNI_INT16": true, "USER_MSR": true, "LKGS": true, "FRED": true, "PBNDKB": true,
}

// notForAs are names that as has not, or of which it makes another instruction.
var notForAs = map[string]bool{"udb": true, "xbegin": true}
