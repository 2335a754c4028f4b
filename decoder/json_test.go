package decoder

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/x86"
)

// decodedJSON is the object of AppendJSON, as encoding/json reads it.
type decodedJSON struct {
	Addr         string  `json:"addr"`
	Bytes        string  `json:"bytes"`
	Length       int     `json:"length"`
	Class        *string `json:"class"`
	Target       *string `json:"target"`
	RIPRelative  bool    `json:"rip_relative"`
	Text         string  `json:"text"`
	KernelLength int     `json:"kernel_length"`
	KernelError  *string `json:"kernel_error"`
	Error        *string `json:"error"`
	KernelOpcode *string `json:"kernel_opcode"`
	KernelClass  *string `json:"kernel_class"`
	KernelTarget *string `json:"kernel_target"`
	*fieldsJSON
}

type fieldsJSON struct {
	Map       string `json:"map"`
	Opcode    string `json:"opcode"`
	Mnemonic  string `json:"mnemonic"`
	Extension string `json:"extension"`
	Prefixes  string `json:"prefixes"`
	Vex       string `json:"vex"`
	OpcodeOff uint8  `json:"opcode_off"`
	OpcodeLen uint8  `json:"opcode_len"`
	ModRM     *uint8 `json:"modrm"`
	SIB       *uint8 `json:"sib"`
	DispOff   uint8  `json:"disp_off"`
	DispLen   uint8  `json:"disp_len"`
	Disp      int32  `json:"disp"`
	ImmOff    uint8  `json:"imm_off"`
	ImmLen    uint8  `json:"imm_len"`
	Imm       int64  `json:"imm"`
}

func marshalled(t *testing.T, b []byte, at x86.Addr) string {
	t.Helper()
	i, err := Decode(b)
	k, kerr := DecodeKernel(b, nil)
	text := func(s string) *string { return &s }
	o := decodedJSON{Addr: at.String(), Bytes: hex.EncodeToString(b[:min(len(b), MaxInsnSize)])}
	if kerr != nil {
		o.KernelError = text(kerr.Error())
	} else {
		o.KernelLength = k.Length
		o.KernelOpcode, o.KernelClass = text(hex.EncodeToString(k.Opcode[:k.OpcodeLen])), text(k.Class().String())
		if k.HasTarget() {
			o.KernelTarget = text(k.Target(at).String())
		}
	}
	if err != nil {
		o.Error = text(err.Error())
	} else {
		o.Bytes, o.Length, o.Class, o.RIPRelative, o.Text = hex.EncodeToString(i.Bytes()), i.Length, text(i.Class.String()), i.RIPRelative, i.Text(at)
		if target, ok := i.Target(at); ok {
			o.Target = text(target.String())
		}
		c := i.Bytes()
		o.fieldsJSON = &fieldsJSON{
			Map: i.Encoding.String(), Opcode: fmt.Sprintf("%02x", i.Opcode), Mnemonic: i.Mnemonic(), Extension: i.Extension(),
			Prefixes: hex.EncodeToString(c[:i.PrefixLen]), Vex: hex.EncodeToString(c[i.PrefixLen : i.PrefixLen+i.VexLen]),
			OpcodeOff: i.OpcodeOff, OpcodeLen: i.OpcodeLen, DispOff: i.DispOff, DispLen: i.DispLen, Disp: i.Disp,
			ImmOff: i.ImmOff, ImmLen: i.ImmLen, Imm: i.Imm(),
		}
		if i.HasModRM {
			o.ModRM = &i.ModRM
		}
		if i.HasSIB {
			o.SIB = &i.SIB
		}
	}
	s, err := json.Marshal(o)
	require.NoError(t, err)
	return string(s) + "\n"
}

// TestAppendJSON: the object equals encoding/json's for the same facts, for samples of every row
// and for strings at random, at addresses up to the last one.
func TestAppendJSON(t *testing.T) {
	var list [][]byte
	for _, e := range Encodings() {
		list = append(list, Samples(e, 1)...)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		b := make([]byte, 1+r.IntN(15))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		list = append(list, b)
	}
	for n, b := range list {
		at := []x86.Addr{0, 0x1000, 0xffffffff81000000}[n%3]
		got, length := AppendJSON(nil, b, at, nil)
		require.Equal(t, marshalled(t, b, at), string(got), "% x", b)
		i, _ := Decode(b)
		require.Equal(t, i.Length, length)
	}
}

// TestJSONLines: the answers of many lines, which several processors share, equal the answers of
// single lines, in order; each instruction is at the same address.
func TestJSONLines(t *testing.T) {
	var in, want strings.Builder
	r := rand.New(rand.NewPCG(3, 4))
	bad := Lines{}
	for n := range 20_000 {
		b := make([]byte, 1+r.IntN(15))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		switch n % 1000 {
		case 7:
			fmt.Fprintf(&in, "\n  \n")
		case 8:
			fmt.Fprintf(&in, "z%d\r\n", n)
			bad.NoBytes++
			want.Write(AppendJSONError(nil, fmt.Sprintf("z%d", n), 5, fmt.Errorf("%q is not bytes in hex, such as 48 89 e5", fmt.Sprintf("z%d", n))))
			continue
		case 9:
			fmt.Fprintf(&in, "0x%x, %x\r\n", b[:1], b[1:])
		default:
			fmt.Fprintf(&in, "%x\n", b)
		}
		if n%1000 == 7 {
			continue
		}
		object, length := AppendJSON(nil, b, 5, nil)
		want.Write(object)
		if length == 0 {
			bad.NoInstruction++
		}
	}
	var out bytes.Buffer
	got, err := JSONLines(strings.NewReader(strings.TrimSuffix(in.String(), "\n")), &out, 5, nil)
	require.NoError(t, err)
	require.Equal(t, bad, got)
	require.Equal(t, want.String(), out.String())
}

// TestJSONLinesAnswersEachLine: a caller that writes line by line gets each answer before it writes
// the next line.
func TestJSONLinesAnswersEachLine(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	go func() {
		_, err := JSONLines(in, out, 0, nil)
		out.CloseWithError(err)
	}()
	buf := make([]byte, 4096)
	for _, line := range []string{"c3", "90", "eb05"} {
		_, err := io.WriteString(ask, line+"\n")
		require.NoError(t, err)
		n, err := answers.Read(buf)
		require.NoError(t, err)
		require.Contains(t, string(buf[:n]), `"bytes":"`+line+`"`)
	}
	require.NoError(t, ask.Close())
	_, err := JSONLines(strings.NewReader(strings.Repeat("9", MaxLine+1)), io.Discard, 0, nil)
	require.ErrorIs(t, err, ErrLine)
}

// BenchmarkJSONLines reports lines a second.
func BenchmarkJSONLines(b *testing.B) {
	var in bytes.Buffer
	for _, e := range Encodings() {
		for _, s := range Samples(e, 4) {
			fmt.Fprintf(&in, "%x\n", s)
		}
	}
	lines := bytes.Count(in.Bytes(), []byte("\n"))
	for b.Loop() {
		if _, err := JSONLines(bytes.NewReader(in.Bytes()), io.Discard, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(lines*b.N)/b.Elapsed().Seconds(), "lines/s")
}
