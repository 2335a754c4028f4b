package film_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/film"
	"kprobelab/x86"
)

const site = 0xffffffff81001000

// story are states in which everything that a film keeps changes.
func story() []film.State {
	original := []byte{0x0f, 0x1f, 0x44, 0, 0, 0xc3}
	code := func(bytes ...byte) film.Code {
		return film.Code{Name: "f", Kind: "function", At: site, Bytes: bytes, Original: original}
	}
	slot := film.Code{Name: "slot of f", Kind: "slot", At: 0xffffffffc0000000, Bytes: []byte{0xc3, 0xcc}}
	longer := slot
	longer.Bytes = []byte{0xc3, 0xcc, 0xcc}
	regs := x86.PtRegs{IP: site, SP: 0xffffc90000000ff8, AX: 1<<64 - 1, R15: 7}
	later := regs
	later.IP, later.AX = site+1, 0
	return []film.State{
		{Who: "module", CPU: -1, Text: "begin", CPUs: make([]film.CPU, 2), Code: []film.Code{code(original...)}},
		{
			Who: "module", CPU: -1, Text: "registered <f>", CPUs: make([]film.CPU, 2), Code: []film.Code{code(0xcc, 0x1f, 0x44, 0, 0, 0xc3), slot},
			Probes: []film.Probe{{Text: "kprobe f", At: site, State: "an int3"}}, Log: []string{"planted", "and more"},
		},
		{
			Who: "CPU 1", CPU: 1, Now: 100, Ran: 12, CPUs: []film.CPU{{}, {Task: "init (1)", Known: true, Regs: regs, Stack: []uint64{1, 2}}},
			Code: []film.Code{code(0xcc, 0x1f, 0x44, 0, 0, 0xc3), slot}, Probes: []film.Probe{{Text: "kprobe f", At: site, State: "an int3"}},
		},
		{
			Who: "CPU 1", CPU: 1, Text: "int3", Now: 101, CPUs: []film.CPU{{}, {Task: "init (1)", Known: true, Frame: true, Regs: later, Stack: []uint64{2}}},
			Code: []film.Code{code(0xcc, 0x1f, 0x44, 0, 0, 0xcc), longer}, Probes: []film.Probe{{Text: "kprobe f", At: site, State: "an int3", Hits: 1}}, Log: []string{"hit"},
		},
		{
			Who: "module", CPU: -1, Text: "gone", Now: 300, CPUs: []film.CPU{{}, {Task: "init (1)", Known: true, Regs: later, Stack: []uint64{2}}},
			Code: []film.Code{code(original...)}, Probes: []film.Probe{},
		},
	}
}

func written(t testing.TB, states []film.State) []byte {
	var b bytes.Buffer
	w, err := film.NewWriter(&b, film.Head{Name: "6.1.core", Release: "6.1.0", Build: "ab", Rules: "6.1", CPUs: 2})
	require.NoError(t, err)
	w.Name(film.Symbol{At: site, Size: 6, Name: "f"})
	for i := range states {
		w.Add(&states[i])
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// A film has every state whole, although it keeps differences.
func TestStatesComeBack(t *testing.T) {
	want := story()
	b := written(t, want)
	f, err := film.Read(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, film.Head{Name: "6.1.core", Release: "6.1.0", Build: "ab", Rules: "6.1", CPUs: 2}, f.Head)
	require.Len(t, f.States, len(want))
	var log []string
	for i, got := range f.States {
		log = append(log, want[i].Log...)
		require.Equal(t, log, got.Log)
		got.Log, want[i].Log = nil, nil
		require.Equal(t, want[i].Code, got.Code, i)
		require.Equal(t, want[i], got, i)
	}
	require.Equal(t, "f+0x5", f.Symbolize(site+5))
	require.Equal(t, "f", f.Symbolize(site))
	require.Empty(t, f.Symbolize(site+6))
	require.Empty(t, f.Symbolize(site-1))
	require.True(t, film.Is(b))
}

// packed is a film of these lines.
func packed(lines ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%d\n", film.Magic, film.Version)
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, strings.Join(lines, "\n"))
	_ = z.Close()
	return b.Bytes()
}

func TestDamagedFilms(t *testing.T) {
	head := `{"name":"k","cpus":1}`
	whole := written(t, story())
	flood := []string{head, `{"who":"m","new":[{"name":"f","kind":"function","at":"1000","bytes":"` + strings.Repeat("00", bounded.FilmCodeSize) + `"}]}`}
	for range bounded.FilmStates - 1 {
		flood = append(flood, `{"who":"m","write":[{"at":"1000","bytes":"01"}]}`, `{"who":"m","write":[{"at":"1000","bytes":"00"}]}`)
	}
	codes := `{"who":"m","new":[`
	for i := range bounded.FilmCode + 1 {
		codes += fmt.Sprintf(`{"name":"f","kind":"slot","at":"%x","bytes":"cc"},`, i)
	}
	for name, c := range map[string]struct {
		film []byte
		want string
	}{
		"empty":              {nil, "it is no film"},
		"another_file":       {[]byte("\x7fELF"), "it is no film"},
		"no_version":         {[]byte("kprobelab film x\n"), "it is no film"},
		"a_later_version":    {[]byte("kprobelab film 2\n"), "a newer kprobelab plays it"},
		"not_packed":         {[]byte("kprobelab film 1\nhello, this is text"), "damaged at line 0"},
		"cut":                {whole[:len(whole)/2], "it ends before its end"},
		"no_state":           {packed(head), "it ends before its end"},
		"no_json":            {packed(head, "x"), "damaged at line 2"},
		"a_type":             {packed(head, `{"who":7}`), "who is a number"},
		"no_processor":       {packed(`{"name":"k","cpus":0}`, `{"who":"m"}`), "a film has 1 to 8"},
		"many_processors":    {packed(`{"name":"k","cpus":9}`, `{"who":"m"}`), "a film has 1 to 8"},
		"another_processor":  {packed(head, `{"who":"m","cpus":[{"cpu":1}]}`), "there is no processor 1"},
		"no_such_processor":  {packed(head, `{"who":"m","cpu":-1}`), "there is no processor -1"},
		"another_register":   {packed(head, `{"who":"m","cpus":[{"cpu":0,"regs":{"xx":"0"}}]}`), `there is no register "xx"`},
		"a_bad_number":       {packed(head, `{"who":"m","cpus":[{"cpu":0,"regs":{"ax":"q"}}]}`), "damaged at line 2"},
		"half_a_byte":        {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"0","bytes":"c"}]}`), "no hexadecimal digits"},
		"original_of_others": {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"0","bytes":"cc","original":"cccc"}]}`), "1 bytes, and 2 original ones"},
		"code_twice":         {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"0","bytes":"cc"},{"name":"f","kind":"slot","at":"0","bytes":"cc"}]}`), "there is code at 0 already"},
		"no_code_gone":       {packed(head, `{"who":"m","gone":["1"]}`), "there is no code at 1"},
		"no_code_written":    {packed(head, `{"who":"m","write":[{"at":"1","bytes":"cc"}]}`), "there is no code at 1"},
		"written_past_end":   {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"0","bytes":"cc"}],"write":[{"at":"0","bytes":"cccc"}]}`), "there is no code at 0"},
		"written_around":     {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"ffffffffffffffff","bytes":"cc"}],"write":[{"at":"0","bytes":"cc"}]}`), "there is no code at 0"},
		"a_long_line":        {packed(head, `{"who":"`+strings.Repeat("x", bounded.FilmLine)+`"}`), "damaged at line 2"},
		"much_code":          {packed(head, strings.TrimSuffix(codes, ",")+"]}"), "too much code"},
		"large_code":         {packed(head, `{"who":"m","new":[{"name":"f","kind":"slot","at":"0","bytes":"`+strings.Repeat("cc", bounded.FilmCodeSize+1)+`"}]}`), "too much code"},
		"a_deep_stack":       {packed(head, `{"who":"m","cpus":[{"cpu":0,"stack":["0"`+strings.Repeat(`,"0"`, bounded.FilmStack)+`]}]}`), "65 words of a stack"},
		"many_states":        {packed(slices.Concat([]string{head}, slices.Repeat([]string{`{"who":"m"}`}, bounded.FilmStates+1))...), "more than 20000 states"},
		"many_changes":       {packed(flood...), "more than 20000 states"},
		"unpacks_to_much":    {packed(head, strings.Repeat(`{"who":"m"`+strings.Repeat(" ", 1000000)+"}\n", 70)), "more than 64 MiB"},
		"a_long_file":        {append(packed(head, `{"who":"m"}`), make([]byte, bounded.FilmFile)...), "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := film.Read(bytes.NewReader(c.film))
			require.ErrorContains(t, err, c.want)
			require.Nil(t, f)
		})
	}
}

// Code that is copied for each state is bounded, too.
func TestAFilmThatChangesMuch(t *testing.T) {
	lines := []string{`{"name":"k","cpus":1}`}
	all := `{"who":"m","write":[`
	for i := range bounded.FilmCode {
		lines = append(lines, fmt.Sprintf(`{"who":"m","new":[{"name":"f","kind":"slot","at":"%x","bytes":"%s"}]}`, i*bounded.FilmCodeSize, strings.Repeat("00", bounded.FilmCodeSize)))
		all += fmt.Sprintf(`{"at":"%x","bytes":"cc"},`, i*bounded.FilmCodeSize)
	}
	lines = append(lines, slices.Repeat([]string{strings.TrimSuffix(all, ",") + "]}"}, 1000)...)
	_, err := film.Read(bytes.NewReader(packed(lines...)))
	require.ErrorContains(t, err, "it changes more code and registers than a film may")
}

// A run that is too long ends in the film with a sentence, and not in the run.
func TestAFilmThatIsFull(t *testing.T) {
	var b bytes.Buffer
	w, err := film.NewWriter(&b, film.Head{CPUs: 1})
	require.NoError(t, err)
	for n := range bounded.FilmStates + 10 {
		w.Add(&film.State{Who: "CPU 0", CPU: 0, Now: uint64(n), CPUs: make([]film.CPU, 1)})
	}
	require.NoError(t, w.Close())
	f, err := film.Read(&b)
	require.NoError(t, err)
	require.Len(t, f.States, bounded.FilmStates)
	require.Equal(t, "The film is full: 11 more states are not in it.", f.States[len(f.States)-1].Text)
	_, err = film.NewWriter(io.Discard, film.Head{CPUs: bounded.FilmCPUs + 1})
	require.ErrorContains(t, err, "at most 8 processors")
}

// A film of an earlier program is read: the format does not change without a new version.
func TestFilmsOfEarlierPrograms(t *testing.T) {
	b, err := os.ReadFile("testdata/version1.film")
	require.NoError(t, err)
	f, err := film.Read(bytes.NewReader(b))
	require.NoError(t, err)
	again, err := film.Read(bytes.NewReader(written(t, story())))
	require.NoError(t, err)
	require.Equal(t, again, f)
}

func FuzzRead(f *testing.F) {
	whole := written(f, story())
	f.Add(whole)
	f.Add(whole[:len(whole)-9])
	f.Add(packed(`{"cpus":1}`, `{"who":"m","new":[{"at":"0","bytes":"cc"}]}`, `{"who":"m","gone":["0"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if film, err := film.Read(bytes.NewReader(b)); err == nil {
			for _, s := range film.States {
				for _, c := range s.Code {
					film.Symbolize(c.At)
				}
			}
		}
	})
}

// FuzzLines reads a film with these lines after its head, which the compression does not hide.
func FuzzLines(f *testing.F) {
	f.Add(`{"who":"m","new":[{"at":"0","bytes":"cc"}]}` + "\n" + `{"who":"m","write":[{"at":"0","bytes":"cc"}]}`)
	f.Add(`{"who":"m","cpus":[{"cpu":0,"regs":{"ip":"1"},"stack":["1"]}],"log":["x"]}`)
	f.Fuzz(func(_ *testing.T, lines string) { _, _ = film.Read(bytes.NewReader(packed(`{"cpus":1}`, lines))) })
}
