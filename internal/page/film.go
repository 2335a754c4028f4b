package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/film"
	"kprobelab/internal/steptext"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// reel is an open film with its steps. Each state but the first is a step of a
// processor, the module or the worker, as in a schedule.
type reel struct {
	name string
	film *film.Film
	whos []byte
}

// exampleName is the film that is part of the program: openat and read of a booted 6.1, with probes on vfs_read.
const exampleName = "vfs_read.film"

//go:embed vfs_read.film
var exampleFilm []byte

// Filmed describes an open film.
type Filmed struct {
	Name string `json:"name"`
	// Example is the name of the film that is part of the program.
	Example string `json:"example"`
	Kernel  string `json:"kernel"`
	Release string `json:"release"`
	CPUs    int    `json:"cpus"`
	States  int    `json:"states"`
	Events  int    `json:"events"`
}

type filmOpening struct {
	Name string `json:"name"`
}

// openFilm opens a film, or describes the one that is open.
func (p *Page) openFilm(q filmOpening, file []byte) (*Filmed, error) {
	switch {
	case file != nil:
		r, err := newReel(q.Name, file)
		if err != nil {
			return nil, err
		}
		p.reel = r
	case p.reel == nil || p.reel.name != q.Name:
		if q.Name != exampleName {
			return nil, fmt.Errorf("the film %s is not open here; drop its file on the page", q.Name)
		}
		r, err := newReel(exampleName, exampleFilm)
		if err != nil {
			return nil, err
		}
		p.reel = r
	}
	r := p.reel
	d := &Filmed{Name: r.name, Example: exampleName, Kernel: r.film.Head.Name, Release: r.film.Head.Release, CPUs: r.film.Head.CPUs, States: len(r.film.States)}
	for _, s := range r.film.States {
		if s.Text != "" {
			d.Events++
		}
	}
	return d, nil
}

func newReel(name string, file []byte) (*reel, error) {
	f, err := film.Read(bytes.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &reel{name: name, film: f}
	for _, s := range f.States[1:] {
		switch {
		case s.CPU >= 0:
			r.whos = append(r.whos, 'a'+byte(s.CPU))
		case s.Who == "worker":
			r.whos = append(r.whos, 'w')
		default:
			r.whos = append(r.whos, 'm')
		}
	}
	return r, nil
}

// filmQuestion requests a state of a film by its steps, or the one that a move leads to.
type filmQuestion struct {
	Film     string `json:"film"`
	Schedule string `json:"schedule"`
	Sub      int    `json:"sub"`
	Move     string `json:"move"`
	By       string `json:"by"`
	Who      string `json:"who"`
	Known    int    `json:"known"`
}

var errOtherOrder = errors.New("a film has one order, in which all of this has happened; the machine under Watch can take its steps in another one")

// play returns a state of a film as a machine's.
func (p *Page) play(q filmQuestion, _ []byte) (*View, error) {
	if _, err := p.openFilm(filmOpening{q.Film}, nil); err != nil {
		return nil, err
	}
	r := p.reel
	n, err := r.position(q.Schedule)
	if err != nil {
		return nil, err
	}
	protocol, at := q.By == byProtocol, n
	switch q.Move {
	case "":
	case "forward":
		at = r.forward(n, protocol, q.Who)
	case "back":
		at = r.back(n, protocol)
	default:
		return nil, errRequest
	}
	before := max(at-1, 0)
	if protocol {
		before = r.back(at, true)
	}
	return r.view(at, before, q.Known, at != n), nil
}

// position is the number of the state after the steps of a schedule.
func (r *reel) position(schedule string) (int, error) {
	n := 0
	for schedule != "" {
		who, digits := schedule[0], 0
		schedule = schedule[1:]
		for digits < len(schedule) && schedule[digits] >= '0' && schedule[digits] <= '9' {
			digits++
		}
		count := 1
		if digits > 0 {
			var err error
			if count, err = strconv.Atoi(schedule[:digits]); err != nil || count < 1 {
				return 0, errRequest
			}
			schedule = schedule[digits:]
		}
		if count > len(r.whos)-n {
			return 0, errOtherOrder
		}
		for range count {
			if r.whos[n] != who {
				return 0, errOtherOrder
			}
			n++
		}
	}
	return n, nil
}

// forward returns the next state, by the protocol the next one with an event; if who is not empty, one of who's steps.
func (r *reel) forward(n int, protocol bool, who string) int {
	for at := n + 1; at < len(r.film.States); at++ {
		if (who == "" || string(r.whos[at-1]) == who) && (!protocol || r.film.States[at].Text != "") {
			return at
		}
	}
	if who != "" {
		return n
	}
	return len(r.film.States) - 1
}

// back returns the state before, by the protocol the last one with an event.
func (r *reel) back(n int, protocol bool) int {
	for n--; n > 0 && protocol && r.film.States[n].Text == ""; n-- {
	}
	return max(n, 0)
}

// textKeys are the keys in words.json of the texts of events, textSigns their marks on the timeline: a film has the texts.
var textKeys, textSigns = func() (keys, signs map[string]string) {
	keys, signs = map[string]string{}, map[string]string{}
	for kind := range kprobes.NumEventKinds {
		for way := kprobes.WayInt3; way <= kprobes.WayReturn; way++ {
			text := steptext.Hit(&kprobes.Event{Kind: kind, Way: way})
			if keys[text] == "" {
				keys[text], signs[text] = hitKey(kind, way), hitMarks[kind]
			}
		}
	}
	for kind := range kprobes.NumOptKinds {
		text := steptext.Optimizer(&kprobes.OptEvent{Kind: kind, Probe: &kprobes.Kprobe{}})
		keys[text], signs[text] = optKey(kind), optMarks[kind]
	}
	return keys, signs
}()

func signOf(text string) string {
	if sign := textSigns[text]; sign != "" {
		return sign
	}
	return "other"
}

// inWords gives a film's event its words.
func (r *reel) inWords(s *film.State) Event {
	e := Event{Who: s.Who, Text: s.Text, What: s.Text, Key: textKeys[s.Text], Lights: []string{}}
	w := dictionaryOfEvents.Events[e.Key]
	if w == nil || s.CPU < 0 || !s.CPUs[s.CPU].Known {
		return e
	}
	// A film does not have an event's probe. Registers with ip one past a probe are of its hit.
	ip := x86.Addr(s.CPUs[s.CPU].Regs.IP)
	i := slices.IndexFunc(s.Probes, func(p film.Probe) bool { return x86.Addr(p.At).Add(1) == ip })
	if n := len(s.Probes); n > 1 && i >= 0 && slices.ContainsFunc(s.Probes[i+1:], func(p film.Probe) bool { return p.At == s.Probes[i].At }) && strings.Contains(w.What, "{probe}") {
		i = -1 // one of several
	}
	if i < 0 || strings.Contains(w.What+w.Why, "{at}") {
		return e
	}
	e.fill(w, r.symbol(x86.Addr(s.Probes[i].At)), "", r.symbol(ip), s.Probes[i].Text)
	if v, ok := profile.ParseVersion(r.film.Head.Release); ok {
		e.Where = dictionaryOfEvents.where(w, v)
	}
	return e
}

func (r *reel) view(n, before, known int, moved bool) *View {
	s, was := &r.film.States[n], &r.film.States[before]
	v := &View{
		Schedule: writeSchedule(r.whos[:n]), Sub: -1, Steps: n, Hash: r.hash(n), Moved: moved,
		Events: []Event{}, Code: []Code{}, Probes: []State{}, Log: []Line{}, Strips: []Strip{}, Stale: []Stale{}, Marks: []Mark{},
	}
	for i := known + 1; i <= n; i++ {
		if m := &r.film.States[i]; m.Text != "" {
			v.Marks = append(v.Marks, Mark{i - 1, 0, signOf(m.Text), m.Text})
		}
	}
	if n > 0 && s.Text != "" {
		v.Sub, v.Events = 0, []Event{r.inWords(s)}
	}
	v.Did = r.did(n)
	for cpu := range s.CPUs {
		c := r.cpu(cpu, s, was)
		c.Can = slices.Contains(r.whos[n:], 'a'+byte(cpu))
		v.CPUs = append(v.CPUs, c)
	}
	for i := range s.Code {
		v.Code = append(v.Code, r.code(s, was, i))
	}
	for _, p := range s.Probes {
		v.Probes = append(v.Probes, State{Text: p.Text, Place: r.symbol(x86.Addr(p.At)), State: p.State, Hits: int(p.Hits), Missed: p.Missed})
	}
	for i, line := range s.Log {
		v.Log = append(v.Log, Line{line, i >= len(was.Log)})
	}
	if n < len(r.whos) {
		v.Next = string(r.whos[n])
	}
	return v
}

// hash is a digest of a state.
func (r *reel) hash(n int) string {
	h := sha256.New()
	fmt.Fprintln(h, n, r.film.States[n])
	return hex.EncodeToString(h.Sum(nil))
}

// symbol names an address, by its number if the film has no name for it.
func (r *reel) symbol(a x86.Addr) string {
	if s := r.film.Symbolize(a); s != "" {
		return s
	}
	return a.String()
}

func (r *reel) named(text string) string { return withNames(text, r.meaning) }

// meaning names an address of code, "" for other numbers.
func (r *reel) meaning(v uint64) string { return r.film.Symbolize(x86.Addr(v)) }

// did says what a step without an event did.
func (r *reel) did(n int) string {
	s := &r.film.States[n]
	switch {
	case n == 0:
		return "Before the first step: " + s.Text + "."
	case s.Text != "":
		return ""
	case s.CPU < 0:
		return s.Text
	}
	was, where := &r.film.States[n-1].CPUs[s.CPU], r.symbol(x86.Addr(s.CPUs[s.CPU].Regs.IP))
	if s.Ran == 1 && was.Known && r.film.States[n-1].CPU == s.CPU {
		at := x86.Addr(was.Regs.IP)
		if text := r.insn(&r.film.States[n-1], at); text != "" {
			return fmt.Sprintf("%s executed %s at %s.", s.Who, text, r.symbol(at))
		}
	}
	return fmt.Sprintf("%s ran %d instructions, of which the film shows no others, and is at %s.", s.Who, s.Ran, where)
}

// insn is the instruction at an address of the film's code, "" if the film does not have it.
func (r *reel) insn(s *film.State, at x86.Addr) string {
	for i := range s.Code {
		if off := at.Sub(s.Code[i].At); off >= 0 && off < int64(len(s.Code[i].Bytes)) {
			return r.named(decoder.Text(s.Code[i].Bytes[off:], at))
		}
	}
	return ""
}

func (r *reel) cpu(n int, s, was *film.State) CPU {
	of, old := &s.CPUs[n], &was.CPUs[n]
	c := CPU{Name: fmt.Sprintf("CPU %d", n), Call: of.Task, State: "runs", Regs: []Word{}, Stack: []Word{}, Fetch: []Fetch{}}
	if !of.Known {
		c.State = "the film has not seen it yet"
		return c
	}
	ip := x86.Addr(of.Regs.IP)
	c.Where, c.Frame = r.symbol(ip), of.Frame
	if !r.insideProbed(s, ip) {
		c.Insn = r.insn(s, ip)
	}
	c.Regs = registerWords(&of.Regs, &old.Regs, old.Known, r.meaning)
	for i, value := range of.Stack {
		w := Word{Name: fmt.Sprintf("sp+%d", 8*i), Value: fmt.Sprintf("%x", value), Means: r.meaning(value)}
		at := of.Regs.SP + uint64(8*i)
		j := int64(at-old.Regs.SP) / 8
		w.Changed = old.Known && (j < 0 || j < int64(len(old.Stack)) && old.Stack[j] != value)
		c.Stack = append(c.Stack, w)
	}
	return c
}

// insideProbed: ip is past the first byte of a probed instruction, so that no instruction begins there.
func (r *reel) insideProbed(s *film.State, ip x86.Addr) bool {
	return slices.ContainsFunc(s.Probes, func(p film.Probe) bool { return x86.Addr(p.At).Add(1) == ip && p.State != "not registered" })
}

const (
	// wholeFunction is the most rows of a function that are all shown; of a longer one, the rows around processors and probes.
	wholeFunction = 36
	aroundCPU     = 9
	aroundProbe   = 2
)

func (r *reel) code(s, was *film.State, n int) Code {
	piece := &s.Code[n]
	c := Code{Name: piece.Name, Kind: piece.Kind, Address: piece.At.String()}
	var old []byte
	for _, b := range was.Code {
		if b.At == piece.At {
			old = b.Bytes
		}
	}
	original := piece.Original
	switch {
	case original == nil:
		original = piece.Bytes
	case old == nil: // the film has not shown it before
		old = original
	}
	keep := map[int]bool{}
	var rows []Row
	for i := 0; i < len(original); {
		size := 1
		if inst, err := decoder.Decode(original[i:]); err == nil {
			size = inst.Length
		}
		end := min(i+size, len(original))
		at := piece.At.Add(int64(i))
		row := Row{Place: fmt.Sprintf("+%#x", i), Text: r.named(decoder.Text(original[i:end], at)), CPUs: cpusAt(s, at, size), Probe: piece.Original != nil && probedAt(s, at)}
		row.Bytes = cells(piece.Bytes[i:end], original[i:end], old[min(i, len(old)):min(end, len(old))])
		if !bytes.Equal(piece.Bytes[i:end], original[i:end]) {
			row.Was = row.Text
			row.Text = r.named(decoder.Text(piece.Bytes[i:min(i+decoder.MaxInsnSize, len(piece.Bytes))], at))
			if piece.Bytes[i] != original[i] && !row.Probe && underJump(s, at) {
				row.Text = "(inside of the jump)"
			}
		}
		around := 0
		switch {
		case len(row.CPUs) > 0:
			around = aroundCPU
		case row.Probe || row.Was != "" || i == 0:
			around = aroundProbe
		}
		for k := len(rows) - around; around > 0 && k <= len(rows)+around; k++ {
			keep[k] = true
		}
		rows = append(rows, row)
		i = end
	}
	if len(rows) > wholeFunction {
		rows = without(rows, keep)
	}
	c.Rows = rows
	return c
}

// without leaves out the rows that are not kept, with a row for each gap.
func without(rows []Row, keep map[int]bool) (list []Row) {
	for i := 0; i < len(rows); {
		n := 0
		for i+n < len(rows) && !keep[i+n] {
			n++
		}
		if n == 0 {
			list = append(list, rows[i])
			i++
			continue
		}
		list = append(list, Row{Place: rows[i].Place, Text: fmt.Sprintf("… %d instructions", n), Bytes: []Cell{}})
		i += n
	}
	return list
}

func probedAt(s *film.State, a x86.Addr) bool {
	return slices.ContainsFunc(s.Probes, func(p film.Probe) bool { return x86.Addr(p.At) == a && p.State != "not registered" })
}

// underJump: a jump at a probe's address would cover this address.
func underJump(s *film.State, a x86.Addr) bool {
	return slices.ContainsFunc(s.Probes, func(p film.Probe) bool { at := x86.Addr(p.At); return a > at && a < at.Add(x86.Rel32Size) })
}

// cpusAt returns the processors whose ip is in an instruction.
func cpusAt(s *film.State, a x86.Addr, n int) (list []string) {
	for cpu := range s.CPUs {
		c := &s.CPUs[cpu]
		if ip := x86.Addr(c.Regs.IP); c.Known && ip >= a && ip < a.Add(int64(n)) {
			name := fmt.Sprintf("CPU %d", cpu)
			if ip != a {
				name += fmt.Sprintf(" (+%d)", ip.Sub(a))
			}
			list = append(list, name)
		}
	}
	return list
}

// registerWords are registers as the page shows them.
func registerWords(regs, old *x86.PtRegs, known bool, meaning func(uint64) string) (list []Word) {
	for _, x := range registers {
		value := x.of(regs)
		w := Word{Name: x.name, Value: fmt.Sprintf("%x", value), Changed: known && value != x.of(old)}
		if w.Means = meaning(value); x.name == "flags" {
			w.Means = flagNames(value)
		}
		list = append(list, w)
	}
	return list
}

// withNames puts symbols in the place of an instruction's addresses.
func withNames(text string, meaning func(uint64) string) string {
	return kernelAddress.ReplaceAllStringFunc(text, func(a string) string {
		v, _ := strconv.ParseUint(a[2:], 16, 64) // the pattern has 16 digits
		if s := meaning(v); s != "" {
			return s
		}
		return a
	})
}
