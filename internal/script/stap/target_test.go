package stap

import (
	"bytes"
	enc "encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
	"kprobelab/internal/script/host/fake"
)

// hit returns the output of a probe's body at a call of f. For a return probe the entry handler runs first.
func hit(t *testing.T, s *fake.System, point, body string) string {
	t.Helper()
	shared, err := fake.Kernel()
	require.NoError(t, err)
	made, err := Analyze("<input>", "probe "+point+" { "+body+" }", &Options{Guru: true, Release: "6.1.0"}, &Kernel{Kernel: shared})
	if p, ok := err.(Problems); ok {
		return p.Text()
	}
	require.NoError(t, err)
	code, err := script.Compile(made.Program)
	require.NoError(t, err)
	var out bytes.Buffer
	thread := code.NewThread(&out)
	thread.Context = s
	for _, p := range made.Probes {
		s.Hit = p
		for _, h := range []*script.Handler{p.Entry, p.Handler} {
			if h == nil {
				continue
			}
			if err := thread.Run(h); err != nil {
				return out.String() + "ERROR: " + err.Error()
			}
		}
	}
	return out.String()
}

// Rule: an expression of the target has the width and the sign of its type, wherever it is read from (SystemTap Language
// Reference, "Target variables").
func TestTargets(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"register_is_cut":              {`println($n, " ", $c)`, "-2 255\n"},
		"signed_member":                {`println($t->n, " ", $t->in->neg)`, "-5 -3\n"},
		"unsigned_member":              {`println($t->in->low)`, "200\n"},
		"bit_fields":                   {`println($t->lo, " ", $t->sb)`, "29 -2\n"},
		"pointer_is_followed":          {`println($t->next->n, " ", $t->next->next == 0)`, "5 1\n"},
		"element":                      {`println($t->list[1])`, "22\n"},
		"element_by_a_variable":        {`for (i = 0; i < 2; i++) println($t->list[i])`, "11\n22\n"},
		"pointer_as_an_array":          {`println($t[1]->n)`, "5\n"},
		"member_of_an_unnamed_union":   {`println($t->a, " ", $t->b)`, "305419896 22136\n"},
		"address_of_a_member":          {`println(&$t->in - $t, " ", &$t->next->list[1] - $t)`, "16 104\n"},
		"address_of_an_array":          {`println($t->name - $t)`, "8\n"},
		"cast_of_a_number":             {`x = $t + 64 println(@cast(x, "thing")->n)`, "5\n"},
		"cast_with_the_kind":           {`println(@cast($t, "struct thing")->next->n, @cast($t, "thing_t")->n)`, "5-5\n"},
		"type_of_a_local":              {`x = $t->next println(x->n)`, "5\n"},
		"size_of_a_type":               {`println(@cast_sizeof("thing"))`, "64\n"},
		"offset_of_a_member":           {`println(@offsetof("thing", next))`, "24\n"},
		"text_of_the_kernel":           {`println(kernel_string($s), "|", kernel_string($t->name))`, "a \"text\"|name\n"},
		"text_of_a_program":            {`println(user_string($t->next->text))`, "program\n"},
		"no_text_there":                {`println(kernel_string(4096), "|", kernel_string2(4096, "none"))`, "ERROR: kernel string copy fault at 0x1000 [man error::fault] near identifier 'kernel_string'"},
		"text_of_so_many":              {`println(kernel_string_n($s, 3))`, "a \"\n"},
		"number_at_an_address":         {`println(kernel_char($s), " ", kernel_int($t), " ", kernel_long($t + 40))`, "97 -5 22\n"},
		"null_is_a_fault":              {`println($t->next->next->n)`, "ERROR: read fault [man error::fault] at 0x0 near identifier '$t'"},
		"fault_is_caught":              {`try { println($t->next->next->n) } catch { println("caught") }`, "caught\n"},
		"defined":                      {`println(@defined($n), @defined($nosuch), @defined($t->n), @defined($t->nosuch))`, "1010\n"},
		"choice_of_what_there_is":      {`println(@choose_defined($nosuch, $n))`, "-2\n"},
		"parameters_in_words":          {`$n = 3 println($$parms)`, "t=0xffff888000001000 n=0x3 c=0xff s=0xffff888000002000\n"},
		"no_locals":                    {`println("[", $$locals, "]")`, "[]\n"},
		"member_is_written":            {`$t->n = 7 $t->in->neg = -1 println($t->n, $t->in->neg)`, "7-1\n"},
		"bit_field_leaves_its_word":    {`$t->sb = 1 println($t->sb, " ", $t->lo)`, "1 29\n"},
		"parameter_is_written":         {`$n = 9 println($n)`, "9\n"},
		"pointer_to_characters_pretty": {`println($s$)`, "\"a \\\"text\\\"\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hit(t, fake.New(), `kernel.function("f")`, c.body)
			if len(c.want) > 6 && c.want[:6] == "ERROR:" {
				require.Greater(t, len(got), len(c.want))
				got = got[:len(c.want)]
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// Rule: at a return, $return is the result with its type, and what the function was called with is that of the entry.
func TestTargetsOfReturns(t *testing.T) {
	for body, want := range map[string]string{
		`println($return)`:                          "-10\n",
		`println($n, " ", $t->n)`:                   "-2 -5\n",
		`println(@entry($t->next->n))`:              "5\n",
		`println($return == -10, " ", returnval())`: "1 -2401053088317177866\n", // which knows no type
		`println($$return)`:                         "return=0xfffffffffffffff6\n",
		`println(@defined($return), $$parms)`:       "1t=0xffff888000001000 n=0xfffffffffffffffe c=0xff s=0xffff888000002000\n",
		`println(@entry($t->next->next->n))`:        "0\n", // what cannot be read at the entry
		`x = $return println(x < 0 ? "no" : "")`:    "no\n",
	} {
		assert.Equal(t, want, hit(t, fake.New(), `kernel.function("f").return`, body), body)
	}
}

// Rule: what has been written at the entry is in the register and in memory, and no more than the type's bytes.
func TestWritesToTargets(t *testing.T) {
	s := fake.New()
	require.Empty(t, hit(t, s, `kernel.function("f")`, `$n = 1 $t->in->low = 0x1ff $t->list[1] = -1 $t->b = 0xabcd`))
	b := make([]byte, 64)
	require.True(t, s.Read(fake.Thing, b, false))
	require.Equal(t, []byte{0xff, 0xfd}, b[16:18])
	require.Equal(t, ^uint64(0), enc.LittleEndian.Uint64(b[40:]))
	require.Equal(t, uint64(0x1234abcd), enc.LittleEndian.Uint64(b[48:]))
	require.Equal(t, uint32(1), uint32(s.Registers[4]))
}

// Rule: what the types do not have is refused before anything runs, with the place.
func TestTargetsThatAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`println($nosuch)`:               "unable to find local 'nosuch' in f",
		`println($t->nosuch)`:            "unable to find member 'nosuch' for struct thing (alternatives: n lo sb name in ...)",
		`println($n->x)`:                 "invalid access '->x' vs 'int'",
		`println($n[0])`:                 "invalid access '[...]' vs 'int'",
		`println($t->in)`:                "'struct inner' is being accessed instead of a member such as '->low'",
		`println(&$n)`:                   "cannot take address of '$n'",
		`println(&$t->lo)`:               "cannot take address of '$t'",
		`println($return)`:               "unresolved target-symbol expression",
		`println(@cast(1, "nosuch")->a)`: "type definition 'nosuch' not found in 'kernel'",
		`println(@var("nosuch"))`:        "unable to find global 'nosuch'",
		`$t->n += 10`:                    "Only the following assign operator is implemented on target variables:",
		`$t->n++`:                        "Only the following assign operator is implemented on target variables:",
		`x = 1 println(x->n)`:            "unknown type in dereference; use @cast to give it one",
	} {
		assert.Contains(t, hit(t, fake.New(), `kernel.function("f")`, body), "semantic error: "+want, body)
	}
}

var _ host.System = (*fake.System)(nil)

// Rule: a register is read by its name, with its own width; register() has the sign, u_register() none (man function::register),
// and a parameter that has no type is read by the width that is asked for.
func TestRegistersByName(t *testing.T) {
	for body, want := range map[string]string{
		`println(register("rdi") == $t, " ", register("rsi"))`:                       "1 -6148914689804861442\n",
		`println(register("esi"), " ", u_register("esi"))`:                           "-2 4294967294\n",
		`println(register("dl"), " ", u_register("dl"), " ", u_register("dh"))`:      "-1 255 1\n",
		`println(u_register("di"))`:                                                  "4096\n",
		`println(long_arg(2), " ", int_arg(2), " ", uint_arg(2), " ", ulong_arg(3))`: "-6148914689804861442 -2 4294967294 511\n",
		`println(pointer_arg(1) == $t)`:                                              "1\n",
	} {
		assert.Equal(t, want, hit(t, fake.New(), `kernel.function("f")`, body), body)
	}
	assert.Contains(t, hit(t, fake.New(), `kernel.function("f")`, `println(register("nosuch"))`), "Unknown register: nosuch")
}

// Rule: numbers in text are read as the kernel's simple_strtol does: to the first byte that is no digit of the base.
func TestNumbersInText(t *testing.T) {
	for _, c := range []struct {
		text string
		base int64
		want int64
	}{
		{"0x1f", 0, 31}, {"0X1F", 16, 31}, {"1f", 16, 31}, {"017", 0, 15}, {"08", 0, 0}, {"0", 0, 0}, {"", 0, 0}, {"0x", 0, 0}, {"0xg", 16, 0},
		{"-5", 10, -5}, {"-0x10", 0, -16}, {"--5", 10, 0}, {"+5", 10, 0}, {" 5", 10, 0}, {"12abc", 10, 12}, {"12abc", 16, 0x12abc}, {"777", 8, 511}, {"779", 8, 63}, {"101", 2, 5},
	} {
		assert.Equal(t, c.want, strtol(c.text, c.base), "%q, base %d", c.text, c.base)
	}
}

// Rule: what does not print is an escape of C, characters of UTF-8 are their numbers, and quotes stand around all of it where they
// are asked for.
func TestTextThatDoesNotPrint(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a\tb\n": `a\tb\n`, `say "x"`: `say \"x\"`, `back\slash`: `back\\slash`, "\x01\x7f": `\001\177`, "é": `\u00E9`, "\U0001f600": `\U0001F600`,
		"\xe9": `\351`, "": "", "end\x00more": "end",
	} {
		assert.Equal(t, want, string((&printing{size: 128}).text(nil, []byte(text))), "%q", text)
		assert.Equal(t, `"`+want+`"`, string((&printing{size: 128, quoted: true}).text(nil, []byte(text))), "%q", text)
	}
	assert.Equal(t, `end\0more`, string((&printing{size: 128, buffer: true}).text(nil, []byte("end\x00more"))), "a buffer has NULs")
}

// Rule: a result is a number in the format that is asked for, and an error has its name beside it.
func TestResultsInWords(t *testing.T) {
	for _, c := range []struct {
		format, v int64
		want      string
	}{
		{1, 7, "7"}, {1, -2, "-2 (ENOENT)"}, {2, -2, "-2 (ENOENT)"}, {2, 255, "0xff"}, {3, 8, "010"}, {1, -4096, "-4096"}, {1, -4095, "-4095"}, {2, -1 << 63, "0x8000000000000000"},
	} {
		assert.Equal(t, c.want, string(returnText(nil, c.format, c.v)), "%d of %d", c.v, c.format)
	}
}
