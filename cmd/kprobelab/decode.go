package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder"
	"kprobelab/profile"
	"kprobelab/x86"
)

func decodeCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "take instructions apart, as the processor and as the kernel's decoder read them",
		ArgsUsage: "HEX...|-",
		Description: "HEX is the bytes of one or more instructions, with or without blanks; - reads the bytes\n" +
			"of one instruction a line. Each byte has a letter below it: p prefix, r REX, v VEX, EVEX\n" +
			"or XOP, o opcode, m ModRM, s SIB, d displacement, i immediate.\n\n" +
			examples(
				"kprobelab decode 48 8b 05 10 00 00 00",
				"kprobelab decode --addr ffffffff81000000 e8fbffffff c3",
				"kprobelab decode c5 f8 77      # the kernel takes it for a conditional jump",
				"echo 62f17c4858c0 | kprobelab decode --json - | jq .length",
				"kprobelab decode check /boot/vmlinuz",
				"kprobelab decode fuzz --count 1000000",
			),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Usage: "the hexadecimal `ADDRESS` of the first instruction", Value: "0", Local: true},
			&cli.StringFlag{Name: "kernel", Usage: "whose decoder the kernel's view is: `PROFILE` is one of " + strings.Join(profile.All(), ", "), Value: "6.1", Local: true},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line: addr, bytes, length, class, target, rip_relative, text, kernel_length, error, and the fields", Local: true},
		},
		Commands: []*cli.Command{decodeCheckCommand(t), decodeFuzzCommand(t)},
		Action:   func(_ context.Context, c *cli.Command) error { return decode(t, c) },
	}
}

func decode(t *term, c *cli.Command) (err error) {
	if c.Args().Len() == 0 {
		return usagef("decode wants the bytes of an instruction in hex, or -; try kprobelab decode --help")
	}
	addr, err := parseAddr(c.String("addr"))
	if err != nil {
		return err
	}
	p, ok := profile.Named(c.String("kernel"))
	if !ok {
		return usagef("there is no profile %q: there are %s", c.String("kernel"), strings.Join(profile.All(), ", "))
	}
	out := bufio.NewWriter(t.out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	v := &decodeView{w: out, style: t.outStyle, json: c.Bool("json"), kernel: &p.Decoder, at: addr}
	if c.Args().Len() == 1 && c.Args().First() == "-" {
		return v.lines(os.Stdin)
	}
	b, err := parseHex(strings.Join(c.Args().Slice(), ""))
	if err != nil {
		if name := c.Args().First(); nearest(c.VisibleCommands(), name) != "" {
			return noCommand(c, name)
		}
		return usagef("%w", err)
	}
	if v.all(b) > 0 {
		return &failure{exitRefused, fmt.Errorf("not every byte belongs to an instruction")}
	}
	return nil
}

func parseAddr(s string) (x86.Addr, error) {
	var a uint64
	if _, err := fmt.Sscanf(strings.TrimPrefix(strings.ToLower(s), "0x")+"\n", "%x\n", &a); err != nil {
		return 0, usagef("--addr: %q is not a hexadecimal address", s)
	}
	return x86.Addr(a), nil
}

// parseHex reads bytes with or without blanks, 0x and \x between them.
func parseHex(s string) ([]byte, error) {
	plain := strings.NewReplacer(" ", "", "\t", "", ",", "", "0x", "", `\x`, "").Replace(s)
	b, err := hex.DecodeString(plain)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%q is not bytes in hex, such as 48 89 e5", s)
	}
	return b, nil
}

// decodeView prints instructions.
type decodeView struct {
	w      *bufio.Writer
	style  style
	json   bool
	kernel *profile.Decoder
	at     x86.Addr
}

// maxDecodeLine is the longest line of decode -, in bytes.
const maxDecodeLine = 1 << 20

// lines decodes one instruction a line. A line that is none is an answer, too.
func (v *decodeView) lines(r io.Reader) error {
	in := bufio.NewReaderSize(r, maxDecodeLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return &failure{exitImage, fmt.Errorf("a line has more than %d bytes", maxDecodeLine)}
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			v.line(text)
		}
		if in.Buffered() == 0 { // a caller that asks line by line waits for the answer
			v.w.Flush()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (v *decodeView) line(text string) {
	b, err := parseHex(text)
	if err != nil {
		v.wrong(text, err)
		return
	}
	v.one(b)
}

// all decodes to the end and returns how many bytes belong to nothing.
func (v *decodeView) all(b []byte) (bad int) {
	for len(b) > 0 {
		n, ok := v.one(b)
		if !ok {
			bad += n
		}
		b = b[n:]
	}
	return bad
}

// decodedJSON is an instruction as --json prints it.
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
	*fieldsJSON
}

// fieldsJSON has the fields; one of length 0 is left out.
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

// one prints the instruction at the start of b and returns its length, 1 and
// false where there is none.
func (v *decodeView) one(b []byte) (int, bool) {
	b = b[:min(len(b), decoder.MaxInsnSize)]
	i, err := decoder.Decode(b)
	k, kerr := decoder.DecodeKernel(b, v.kernel)
	n := i.Length
	if err != nil {
		n = 1
	}
	if v.json {
		v.object(b, &i, err, &k, kerr)
	} else {
		v.people(b, &i, err, &k, kerr)
	}
	v.at = v.at.Add(int64(n))
	return n, err == nil
}

func (v *decodeView) object(b []byte, i *decoder.Inst, err error, k *decoder.Kernel, kerr error) {
	o := decodedJSON{Addr: v.at.String(), Bytes: hex.EncodeToString(b), KernelError: errorText(kerr), Error: errorText(err)}
	if kerr == nil {
		o.KernelLength = k.Length
	}
	if err == nil {
		class := i.Class.String()
		o.Bytes, o.Length, o.Class, o.RIPRelative, o.Text = hex.EncodeToString(i.Bytes()), i.Length, &class, i.RIPRelative, i.Text(v.at)
		if target, ok := i.Target(v.at); ok {
			s := target.String()
			o.Target = &s
		}
		o.fieldsJSON = fieldsOf(i)
	}
	v.print(o)
}

func (v *decodeView) print(o decodedJSON) {
	text, err := json.Marshal(o)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	v.w.Write(append(text, '\n'))
}

// wrong is an input line that holds no bytes.
func (v *decodeView) wrong(line string, err error) {
	if v.json {
		v.print(decodedJSON{Addr: v.at.String(), Bytes: line, Error: errorText(err)})
		return
	}
	fmt.Fprintf(v.w, "%s: %v\n", v.style.red("error"), err)
}

func errorText(err error) *string {
	if err == nil {
		return nil
	}
	s := err.Error()
	return &s
}

func fieldsOf(i *decoder.Inst) *fieldsJSON {
	b := i.Bytes()
	f := &fieldsJSON{
		Map: i.Encoding.String(), Opcode: fmt.Sprintf("%02x", i.Opcode), Mnemonic: i.Mnemonic(), Extension: i.Extension(),
		Prefixes: hex.EncodeToString(b[:i.PrefixLen]), Vex: hex.EncodeToString(b[i.PrefixLen : i.PrefixLen+i.VexLen]),
		OpcodeOff: i.OpcodeOff, OpcodeLen: i.OpcodeLen, DispOff: i.DispOff, DispLen: i.DispLen, Disp: i.Disp,
		ImmOff: i.ImmOff, ImmLen: i.ImmLen, Imm: i.Imm(),
	}
	if i.HasModRM {
		f.ModRM = &i.ModRM
	}
	if i.HasSIB {
		f.SIB = &i.SIB
	}
	return f
}
