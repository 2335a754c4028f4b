package page_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab"
	"kprobelab/internal/page"
	"kprobelab/internal/report"
	"kprobelab/profile"
)

// ask asks a page, and reads the answer into a.
func ask(t require.TestingT, p *page.Page, question map[string]any, file []byte, a any) {
	q, err := json.Marshal(question)
	require.NoError(t, err)
	answer := p.Answer(string(q), file)
	require.NotContains(t, answer, `{"error"`)
	require.NoError(t, json.Unmarshal([]byte(answer), a))
}

// complaint is the sentence that a question is answered with.
func complaint(t require.TestingT, p *page.Page, question string, file []byte) string {
	var e struct {
		Error *string `json:"error"`
	}
	answer := p.Answer(question, file)
	require.NoError(t, json.Unmarshal([]byte(answer), &e))
	require.NotNil(t, e.Error, answer)
	return *e.Error
}

func TestHelloNamesEveryRelease(t *testing.T) {
	var h page.Hello
	ask(t, &page.Page{}, map[string]any{"do": "hello"}, nil, &h)
	var names []string
	for _, r := range h.Releases {
		names = append(names, r.Name)
		require.NotEmpty(t, r.About)
	}
	require.Equal(t, profile.All(), names)
	require.Contains(t, names, h.Default)
}

// The page gives explain's answer for every byte.
func TestVerdictsAreThoseOfExplain(t *testing.T) {
	// Code that is likely to be instructions: pieces of functions, and any bytes.
	piece := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 1, 4),
		rapid.SampledFrom([][]byte{{0x55}, {0x48, 0x89, 0xe5}, {0xeb, 0x03}, {0xeb, 0xfa}, {0x90}, {0xc3}, {0xcc}, {0x48, 0xf7, 0xd8}, {0xff, 0xe0}, {0xe9, 0xfb, 0xff, 0xff, 0xff}, {0xf3, 0x0f, 0x1e, 0xfa}, {0x74, 0x01}, {0x0f, 0x0b}, {0x48, 0x8d, 0x05, 1, 0, 0, 0}}),
	)
	rapid.Check(t, func(t *rapid.T) {
		code := slices.Concat(rapid.SliceOfN(piece, 1, 10).Draw(t, "code")...)
		release := rapid.SampledFrom(profile.All()).Draw(t, "release")
		c, _ := profile.Named(release)
		var f page.Function
		ask(t, &page.Page{}, map[string]any{"do": "code", "hex": hex.EncodeToString(code), "release": release}, nil, &f)
		require.Len(t, f.Bytes, len(code))
		for i, b := range f.Bytes {
			e, err := report.NewExample(code, c).Explain(fmt.Sprintf("%s+%#x", f.Address, i))
			require.NoError(t, err)
			require.Equal(t, e.Errno, b.Errno)
			require.Equal(t, e.RegisterReason.String(), b.Rule)
			require.Equal(t, e.How, b.How)
			require.Equal(t, e.Optimized, b.Optimized)
			require.Len(t, b.Reasons, len(e.Reasons))
			for j, r := range e.Reasons {
				require.Equal(t, r.ID.String(), b.Reasons[j].ID)
				require.Equal(t, r.Sentence, b.Reasons[j].Sentence)
				if r.Addr.Known {
					require.EqualValues(t, r.Addr.Sub(e.Addr.Addr)+int64(i), b.Reasons[j].At)
				}
			}
		}
	})
}

// A reason stands at the byte that it is about, and only instructions' first bytes
// have a text.
func TestReasonsAreAtTheirBytes(t *testing.T) {
	var f page.Function
	ask(t, &page.Page{}, map[string]any{"do": "code", "hex": "55 4889e5 eb03 90 48d1e0 ebfa 909090909090 c3"}, nil, &f)
	var begins []int
	for _, b := range f.Bytes {
		if b.Text != "" {
			begins = append(begins, b.Offset)
		}
	}
	require.Equal(t, []int{0, 1, 4, 6, 7, 10, 12, 13, 14, 15, 16, 17, 18}, begins)
	require.Equal(t, "EILSEQ", f.Bytes[2].Name)
	at := map[string]int{}
	for _, r := range f.Bytes[1].Reasons {
		at[r.ID] = r.At
	}
	require.Equal(t, map[string]int{"JTPR_TARGET": 10, "NOT_BOOSTABLE": 4}, at)
	require.True(t, f.Bytes[12].Optimized)
}

func TestAFunctionOfTheGuestKernel(t *testing.T) {
	p := &page.Page{}
	var s page.Search
	ask(t, p, map[string]any{"do": "search", "text": "gcd"}, nil, &s)
	require.Equal(t, "gcd", s.Found[0].Name)
	var f page.Function
	ask(t, p, map[string]any{"do": "function", "name": "gcd"}, nil, &f)
	require.EqualValues(t, f.Size, len(f.Bytes))
	require.True(t, f.Bytes[5].Optimized)

	var e struct {
		Optimized bool   `json:"optimized"`
		Text      string `json:"text"`
	}
	ask(t, p, map[string]any{"do": "explain", "name": "gcd", "offset": 5}, nil, &e)
	require.True(t, e.Optimized)
	require.Contains(t, e.Text, "detour buffer")

	var o page.Opened
	ask(t, p, map[string]any{"do": "open", "release": "2.6.18"}, nil, &o)
	require.Equal(t, "2.6.18", o.Image.Profile)
	ask(t, p, map[string]any{"do": "function", "name": "gcd"}, nil, &f)
	require.False(t, f.Bytes[5].Optimized)
}

// Whatever comes, the answer is a sentence, and the page goes on.
func TestBadInputGetsASentence(t *testing.T) {
	for name, c := range map[string]struct {
		question string
		file     []byte
		says     string
	}{
		"no_json":         {"{", nil, "not one that the page has made"},
		"no_question":     {"{}", nil, "not one that the page has made"},
		"unknown":         {`{"do":"rm"}`, nil, "not one that the page has made"},
		"wrong_type":      {`{"do":"code","hex":7}`, nil, "not one that the page has made"},
		"too_long":        {`{"do":"code","hex":"` + strings.Repeat("9", 2<<20) + `"}`, nil, "not one that the page has made"},
		"no_bytes":        {`{"do":"code","hex":" "}`, nil, "there are no bytes"},
		"no_digit":        {`{"do":"code","hex":"5g"}`, nil, "'g' is no hexadecimal digit"},
		"half_a_byte":     {`{"do":"code","hex":"554"}`, nil, "two hexadecimal digits"},
		"too_many_bytes":  {`{"do":"code","hex":"` + strings.Repeat("90", page.MaxCode+1) + `"}`, nil, "at most 4096"},
		"unknown_release": {`{"do":"code","hex":"90","release":"1.0"}`, nil, `no release "1.0"`},
		"garbage_image":   {`{"do":"open","name":"x"}`, []byte("garbage"), "x"},
		"empty_image":     {`{"do":"open","name":"x"}`, []byte{}, "x"},
		"cut_off_elf":     {`{"do":"open","name":"x"}`, []byte("\x7fELF\x02\x01\x01"), "x"},
		"image_not_here":  {`{"do":"open","name":"x"}`, nil, "drop its file on the page"},
		"no_function":     {`{"do":"function","name":"nosuch"}`, nil, `no function "nosuch"`},
		"not_a_function":  {`{"do":"function","name":"guest_banner_that_is_not_there"}`, nil, "has no function"},
		"before_code":     {`{"do":"explain","hex":"90","offset":-1}`, nil, "none at -1"},
		"control":         {`{"do":"open","name":"\u001b[2J"}`, []byte("garbage"), `\u001b`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &page.Page{}
			says := complaint(t, p, c.question, c.file)
			require.Contains(t, says, c.says)
			require.NotContains(t, says, "\x1b")
			var f page.Function
			ask(t, p, map[string]any{"do": "code", "hex": "90"}, nil, &f)
			require.Len(t, f.Bytes, 1)
		})
	}
}

// An image that is larger than the bound is not looked at.
func TestImagesThatAreTooLarge(t *testing.T) {
	const question = `{"do":"open","name":"x"}`
	require.NotContains(t, complaint(t, &page.Page{}, question, make([]byte, page.MaxImage)), "the page takes")
	require.Equal(t, "x has 512 MB; the page takes images of at most 512 MB", complaint(t, &page.Page{}, question, make([]byte, page.MaxImage+1)))
}

func FuzzAnswer(f *testing.F) {
	for _, q := range []string{`{"do":"hello"}`, `{"do":"code","hex":"5548"}`, `{"do":"explain","hex":"90","offset":0}`, `{"do":"search","text":"a"}`} {
		f.Add(q, []byte(nil))
	}
	f.Add(`{"do":"open","name":"a"}`, []byte("\x7fELF"))
	f.Fuzz(func(t *testing.T, q string, file []byte) {
		var any map[string]any
		answer := (&page.Page{}).Answer(q, file)
		require.NoError(t, json.Unmarshal([]byte(answer), &any))
		require.NotContains(t, answer, "made a mistake")
	})
}

// A function in assembly is answered as its bytes are.
func TestAssemblyIsAnsweredAsItsBytes(t *testing.T) {
	p := &page.Page{}
	var f, want page.Function
	ask(t, p, map[string]any{"do": "code", "asm": "push %rbp\nmov %rsp,%rbp\njmp end\nnop\nend: pop %rbp\nret", "release": "6.1"}, nil, &f)
	ask(t, p, map[string]any{"do": "code", "hex": "55 48 89 e5 eb 01 90 5d c3", "release": "6.1"}, nil, &want)
	require.Equal(t, want, f)
	for text, says := range map[string]string{
		"nop\nfrob":                             "line 2: frob: there is no instruction frob here",
		" # nothing":                            "there is no instruction",
		strings.Repeat("nop\n", 501):            "more than 500 lines",
		strings.Repeat("movabs $1,%rax\n", 450): "4500 bytes are too many",
	} {
		q, err := json.Marshal(map[string]string{"do": "code", "asm": text})
		require.NoError(t, err)
		require.Contains(t, complaint(t, p, string(q), nil), says)
	}
}

// A probe of the function tracer has no int3 that it could keep, and a byte inside an instruction is
// told as such.
func TestKindsOfAnswers(t *testing.T) {
	p := &page.Page{}
	var f page.Function
	ask(t, p, map[string]any{"do": "function", "name": "gcd"}, nil, &f)
	require.Equal(t, "ftrace", f.Bytes[0].Kind)
	require.Equal(t, "inside", f.Bytes[1].Kind)
	explain := func(name string, at int) string {
		return p.Answer(fmt.Sprintf(`{"do":"explain","name":%q,"offset":%d}`, name, at), nil)
	}
	require.Contains(t, explain("gcd", 0), "No int3, so nothing to optimize")
	require.NotContains(t, explain("gcd", 0), "keeps its int3.")
	require.Contains(t, explain("gcd", 2), "inside of nop")
	require.NotContains(t, explain("gcd", 0), "inside of")
	require.Contains(t, explain("opt_yes", 0), "Optimization: yes.")
	require.Contains(t, explain("opt_no_jump_in", 0), "Optimization: no. The probe keeps its int3.")
}

// An answer is about the image that the address names, or there is none.
func TestAnswersAreOfTheNamedImage(t *testing.T) {
	p := &page.Page{}
	const of = `{"do":%q,"name":"gcd","offset":0,"calls":"gcd(1,2)","sub":-1,"image":%q,"build":%q}`
	for _, do := range []string{"function", "explain", "watch"} {
		require.Contains(t, complaint(t, p, fmt.Sprintf(of, do, "vmlinuz", ""), nil), "vmlinuz is not open here")
	}
	var o page.Opened
	ask(t, p, map[string]any{"do": "open", "name": "vmlinuz"}, kprobelab.GuestELF(), &o)
	for _, do := range []string{"function", "explain", "watch"} {
		require.Contains(t, complaint(t, p, fmt.Sprintf(of, do, "vmlinuz", "0123"), nil), "is another one")
		require.Contains(t, complaint(t, p, fmt.Sprintf(of, do, "other", o.Build), nil), "other is not open here")
		require.NotContains(t, p.Answer(fmt.Sprintf(of, do, "vmlinuz", o.Build), nil), `{"error"`)
	}
}

// A place is found as perf, ftrace and the kernel's log write it.
func TestPlacesAreFound(t *testing.T) {
	p := &page.Page{}
	var f page.Function
	ask(t, p, map[string]any{"do": "function", "name": "gcd"}, nil, &f)
	for text, want := range map[string]page.Search{
		"gcd": {Function: "gcd"}, "gcd+0x5": {Function: "gcd", Offset: 5}, " gcd + 5 ": {Function: "gcd", Offset: 5}, f.Address: {Function: "gcd"},
		"gcd+0x500": {}, "gcd+": {}, "gc": {}, "0xffffffff00000000": {},
	} {
		var s page.Search
		ask(t, p, map[string]any{"do": "search", "text": text}, nil, &s)
		require.Equal(t, want.Function, s.Function, text)
		require.Equal(t, want.Offset, s.Offset, text)
	}
}

func TestADumpGetsASentence(t *testing.T) {
	core := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	core[16] = 4
	for _, file := range [][]byte{core, []byte("KDUMP   \x06"), []byte("makedumpfile\x00")} {
		require.Contains(t, complaint(t, &page.Page{}, `{"do":"open","name":"demo.core"}`, file), "demo.core is the memory of a booted kernel, which this page does not run")
	}
}

// A jump inside the function says where it leads; own bytes end where nothing follows them.
func TestTextsOfInstructions(t *testing.T) {
	p := &page.Page{}
	var f page.Function
	ask(t, p, map[string]any{"do": "function", "name": "strlen"}, nil, &f)
	require.Equal(t, "je strlen+0x20", f.Bytes[8].Text)
	const own = `{"do":"explain","hex":%q,"offset":0}`
	require.Contains(t, p.Answer(fmt.Sprintf(own, "90"), nil), "nothing follows the bytes that you have written")
	require.NotContains(t, p.Answer(fmt.Sprintf(own, strings.Repeat("90", 40)), nil), "nothing follows the bytes that you have written")
}

// A name with blanks in it is a name.
func TestANameIsFoundBeforeAPlace(t *testing.T) {
	var s page.Search
	ask(t, &page.Page{}, map[string]any{"do": "search", "text": "gc"}, nil, &s)
	require.Empty(t, s.Function)
	require.Positive(t, s.Total)
}
