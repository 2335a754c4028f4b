package explore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

// Scenario is a *.poke file (docs/explore.md).
type Scenario struct {
	Name, About string
	Funcs       []Func
	Probes      []ProbeDef
	Sites       []SiteDef
	Modules     []ModuleDef
	Setup       []Action
	Columns     []Column
	// Expect is the verdict by profile; "" stands for all other profiles.
	Expect map[string]string
	// Exists and Forbidden are conditions on the ends of runs.
	Exists, Forbidden []Cond
}

// Func is a function of the scenario.
type Func struct {
	Name  string
	insns []string
}

// ProbeDef is a probe that actions name.
type ProbeDef struct {
	Name, Func     string
	Off            int
	Post, Disabled bool
	// OnLoad: it waits for its module, and is registered whenever that is loaded.
	OnLoad bool
	// Return: it is a return probe, with Active instances of Data bytes.
	Return       bool
	Active, Data int
}

// SiteDef is five bytes of text that another part of the kernel changes (a jump
// label, a static call): a no-operation, or a jump to a place of the function.
type SiteDef struct {
	Name, Func string
	Off, To    int
}

// ModuleDef is a module, with functions that follow each other.
type ModuleDef struct {
	Name  string
	Funcs []string
}

// Action is one thing that a CPU does.
type Action struct {
	Verb, Name string
	// Refused: it has to be refused; Perhaps: it may be.
	Refused, Perhaps bool
}

// String is the action as a scenario has it.
func (a Action) String() string {
	text := strings.TrimSpace(a.Verb + " " + a.Name)
	switch {
	case a.Refused:
		text = "refused " + text
	case a.Perhaps:
		text = "perhaps " + text
	}
	return text
}

// Column is a CPU's actions, in order, or those of an interrupt that comes at any point of its CPU.
type Column struct {
	Name    string
	CPU     int
	Kind    columnKind
	Actions []Action
}

type columnKind int

const (
	columnMain columnKind = iota
	columnIRQ
	columnNMI
)

// Cond is a conjunction of values at the end of a run.
type Cond []Value

// Value is one of them: p.hits=1.
type Value struct {
	Of, What string
	N        int
}

// String is the condition as a scenario has it.
func (c Cond) String() string {
	var list []string
	for _, v := range c {
		list = append(list, fmt.Sprintf("%s.%s=%d", v.Of, v.What, v.N))
	}
	return strings.Join(list, " and ")
}

// Limits of a scenario.
const (
	MaxFile = bounded.ScenarioFile
)

// verbs are the actions, with the kind of name that each takes.
var verbs = map[string]string{
	"call": "function", "register": "probe", "unregister": "probe", "enable": "probe", "disable": "probe",
	"settle": "", "optimization-on": "", "optimization-off": "", "arm-all": "", "disarm-all": "",
	"poke": "site", "unpoke": "site", "queue": "site", "unqueue": "site", "flush": "", "kill": "function",
	"load": "module", "unload": "module", "livepatch": "function", "unlivepatch": "function", "kill-ftrace": "",
}

// refusable are the actions that can be refused.
var refusable = []string{"register", "enable", "disable"}

var (
	nameRule   = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)
	columnRule = regexp.MustCompile(`^cpu([0-7])(\.irq|\.nmi)?$`)
	placeRule  = regexp.MustCompile(`^([a-z_][a-z0-9_-]*)(?:\+(\d{1,3}))?$`)
	valueRule  = regexp.MustCompile(`^([a-z][a-z0-9_-]*)\.([a-z]+)=(\d{1,4})$`)
)

// Parse reads a scenario.
func Parse(text string) (*Scenario, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("a scenario is at most %d bytes long", MaxFile)
	}
	s := &Scenario{Expect: map[string]string{}}
	inTable := false
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			inTable = false
			continue
		}
		var err error
		switch {
		case inTable && !begins(line):
			err = s.row(line)
		case strings.HasPrefix(line, "cpu"):
			err = s.header(line)
			inTable = true
		default:
			inTable = false
			err = s.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return s, s.check()
}

// lineWords are the first words of a scenario's lines outside the table. No action has one of
// these names, so that the first of them also ends the table.
var lineWords = []string{"scenario", "about", "text", "probe", "site", "module", "setup", "expect", "exists", "forbidden"}

func begins(line string) bool {
	word, _, _ := strings.Cut(line, " ")
	return slices.Contains(lineWords, word)
}

func (s *Scenario) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "scenario":
		s.Name = rest
		if !nameRule.MatchString(rest) {
			return fmt.Errorf("%q is no name: small letters, digits, - and _", rest)
		}
	case "about":
		s.About = strings.TrimSpace(s.About + " " + rest)
	case "text":
		return s.text(rest)
	case "probe":
		return s.probe(rest)
	case "site":
		return s.site(rest)
	case "module":
		name, funcs, _ := strings.Cut(rest, ":")
		if !nameRule.MatchString(name) || strings.TrimSpace(funcs) == "" {
			return errors.New("module takes NAME: FUNCTION…")
		}
		s.Modules = append(s.Modules, ModuleDef{name, strings.Fields(funcs)})
	case "setup":
		for part := range strings.SplitSeq(rest, ";") {
			a, err := action(part)
			if err != nil {
				return err
			}
			s.Setup = append(s.Setup, a)
		}
	case "expect":
		return s.expect(strings.Fields(rest))
	case "exists", "forbidden":
		c, err := cond(rest)
		if err != nil {
			return err
		}
		if word == "exists" {
			s.Exists = append(s.Exists, c)
		} else {
			s.Forbidden = append(s.Forbidden, c)
		}
	default:
		return fmt.Errorf("%q begins no line of a scenario", word)
	}
	return nil
}

func (s *Scenario) expect(f []string) error {
	if len(f) == 0 {
		return errors.New("expect takes a verdict, or profiles and a verdict")
	}
	last := len(f) - 1
	if !slices.Contains(Verdicts(), Verdict(f[last])) {
		return fmt.Errorf("%q is no verdict: %v", f[last], Verdicts())
	}
	for _, name := range f[:last] {
		if !slices.Contains(profile.All(), name) {
			return fmt.Errorf("expect: there is no profile %q", name)
		}
		s.Expect[name] = f[last]
	}
	if last == 0 {
		s.Expect[""] = f[0]
	}
	return nil
}

func (s *Scenario) text(rest string) error {
	name, code, ok := strings.Cut(rest, ":")
	if !ok || !nameRule.MatchString(name) {
		return errors.New("text takes NAME: INSTRUCTION…")
	}
	f := Func{Name: name, insns: strings.Fields(code)}
	if len(f.insns) == 0 || len(f.insns) > bounded.ScenarioCode || len(s.Funcs) == bounded.ScenarioFunctions {
		return fmt.Errorf("a scenario has up to %d functions of 1 to %d instructions", bounded.ScenarioFunctions, bounded.ScenarioCode)
	}
	s.Funcs = append(s.Funcs, f)
	return nil
}

func (s *Scenario) probe(rest string) error {
	name, where, _ := strings.Cut(rest, ":")
	f := strings.Fields(where)
	if !nameRule.MatchString(name) || len(f) == 0 {
		return errors.New("probe takes NAME: FUNCTION+OFFSET [post] [disabled] [onload] [return [active=N] [data=N]]")
	}
	p := ProbeDef{Name: name}
	var err error
	if p.Func, p.Off, err = place(f[0]); err != nil {
		return err
	}
	for _, word := range f[1:] {
		if err := p.option(word); err != nil {
			return err
		}
	}
	if p.Post && p.Return || !p.Return && p.Active+p.Data > 0 {
		return fmt.Errorf("probe %s: a return probe has no post handler, and only that has active= and data=", name)
	}
	s.Probes = append(s.Probes, p)
	return nil
}

// option reads a word after a probe's place.
func (p *ProbeDef) option(word string) error {
	key, value, number := strings.Cut(word, "=")
	n, err := strconv.Atoi(value)
	switch {
	case word == "post":
		p.Post = true
	case word == "disabled":
		p.Disabled = true
	case word == "onload":
		p.OnLoad = true
	case word == "return":
		p.Return = true
	case number && key == "active" && err == nil && n > 0 && n <= bounded.ScenarioActive:
		p.Active = n
	case number && key == "data" && err == nil && n > 0 && n <= bounded.ScenarioData:
		p.Data = n
	default:
		return fmt.Errorf("%q is no word of a probe: post, disabled, onload, return, active=1 to %d, data=1 to %d", word, bounded.ScenarioActive, bounded.ScenarioData)
	}
	return nil
}

func (s *Scenario) site(rest string) error {
	name, where, _ := strings.Cut(rest, ":")
	from, to, ok := strings.Cut(where, "->")
	n, err := strconv.Atoi(strings.TrimSpace(to))
	if !ok || err != nil || n < 0 || n > 255 || !nameRule.MatchString(name) {
		return errors.New("site takes NAME: FUNCTION+OFFSET -> OFFSET")
	}
	d := SiteDef{Name: name, To: n}
	if d.Func, d.Off, err = place(strings.TrimSpace(from)); err != nil {
		return err
	}
	s.Sites = append(s.Sites, d)
	return nil
}

func place(text string) (string, int, error) {
	m := placeRule.FindStringSubmatch(text)
	if m == nil {
		return "", 0, fmt.Errorf("%q is no place: FUNCTION+OFFSET", text)
	}
	off, _ := strconv.Atoi("0" + m[2])
	return m[1], off, nil
}

func action(text string) (Action, error) {
	f := strings.Fields(text)
	before := ""
	if len(f) > 0 && (f[0] == "refused" || f[0] == "perhaps") {
		before, f = f[0], f[1:]
	}
	if len(f) == 0 || len(f) > 2 || before != "" && !slices.Contains(refusable, f[0]) {
		return Action{}, fmt.Errorf("%q is no action", strings.TrimSpace(text))
	}
	a := Action{Verb: f[0], Refused: before == "refused", Perhaps: before == "perhaps"}
	if len(f) == 2 {
		a.Name = f[1]
	}
	takes, ok := verbs[a.Verb]
	if !ok || (takes == "") != (a.Name == "") {
		return Action{}, fmt.Errorf("%q is no action", strings.TrimSpace(text))
	}
	return a, nil
}

func cond(text string) (c Cond, err error) {
	for part := range strings.SplitSeq(text, " and ") {
		m := valueRule.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return nil, fmt.Errorf("%q is no condition: PROBE.hits=N, cpuN.traps=N, …", strings.TrimSpace(part))
		}
		n, _ := strconv.Atoi(m[3])
		c = append(c, Value{m[1], m[2], n})
	}
	return c, nil
}

func (s *Scenario) header(line string) error {
	if len(s.Columns) > 0 {
		return errors.New("a scenario has one table of CPUs")
	}
	for cell := range strings.SplitSeq(line, "|") {
		cell = strings.TrimSpace(cell)
		m := columnRule.FindStringSubmatch(cell)
		if m == nil {
			return fmt.Errorf("%q is no column: cpuN, cpuN.irq, cpuN.nmi", cell)
		}
		n, _ := strconv.Atoi(m[1])
		c := Column{Name: cell, CPU: n}
		switch m[2] {
		case ".irq":
			c.Kind = columnIRQ
		case ".nmi":
			c.Kind = columnNMI
		}
		if slices.ContainsFunc(s.Columns, func(o Column) bool { return o.Name == cell }) {
			return fmt.Errorf("column %s is there twice", cell)
		}
		s.Columns = append(s.Columns, c)
	}
	return nil
}

func (s *Scenario) row(line string) error {
	cells := strings.Split(line, "|")
	if len(cells) > len(s.Columns) {
		return errors.New("a row has more cells than the table has columns")
	}
	for i, cell := range cells {
		if strings.TrimSpace(cell) == "" {
			continue
		}
		a, err := action(cell)
		if err != nil {
			return err
		}
		s.Columns[i].Actions = append(s.Columns[i].Actions, a)
	}
	return nil
}

// check looks at what only the whole file says.
func (s *Scenario) check() error {
	names := map[string]string{}
	add := func(name, kind string) error {
		if names[name] != "" {
			return fmt.Errorf("%s is the name of two things", name)
		}
		names[name] = kind
		return nil
	}
	for _, f := range s.Funcs {
		if err := add(f.Name, "function"); err != nil {
			return err
		}
	}
	for _, p := range s.Probes {
		if err := add(p.Name, "probe"); err != nil {
			return err
		}
	}
	for _, d := range s.Sites {
		if err := add(d.Name, "site"); err != nil {
			return err
		}
	}
	for _, m := range s.Modules {
		if err := add(m.Name, "module"); err != nil {
			return err
		}
		if !s.follow(m.Funcs) {
			return fmt.Errorf("module %s: its functions are not there, or do not follow each other", m.Name)
		}
	}
	switch {
	case s.Name == "":
		return errors.New("a scenario has a line \"scenario NAME\"")
	case len(s.Funcs) == 0:
		return errors.New("a scenario has a line \"text NAME: INSTRUCTION…\"")
	case len(s.Columns) == 0 || len(s.Columns) > bounded.ScenarioColumns:
		return fmt.Errorf("a scenario has a table of 1 to %d columns", bounded.ScenarioColumns)
	case len(s.Probes)+len(s.Sites) > bounded.ScenarioProbes:
		return fmt.Errorf("a scenario has up to %d probes and sites", bounded.ScenarioProbes)
	}
	for _, a := range s.allActions() {
		if takes := verbs[a.Verb]; takes != "" && names[a.Name] != takes {
			return fmt.Errorf("%s: there is no %s %q", a, takes, a.Name)
		}
	}
	return s.checkColumns(names)
}

// follow reports whether these functions are there, one after the other.
func (s *Scenario) follow(names []string) bool {
	first := slices.IndexFunc(s.Funcs, func(f Func) bool { return f.Name == names[0] })
	for i, name := range names {
		if first < 0 || first+i >= len(s.Funcs) || s.Funcs[first+i].Name != name {
			return false
		}
	}
	return true
}

func (s *Scenario) allActions() []Action {
	list := slices.Clone(s.Setup)
	for _, c := range s.Columns {
		list = append(list, c.Actions...)
	}
	return list
}

func (s *Scenario) checkColumns(names map[string]string) error {
	for _, c := range s.Columns {
		if len(c.Actions) > bounded.ScenarioActions {
			return fmt.Errorf("%s: a column has up to %d actions", c.Name, bounded.ScenarioActions)
		}
		if slices.ContainsFunc(c.Actions, func(a Action) bool { return a.Verb == "settle" }) {
			return fmt.Errorf("%s: settle is for the setup: here the worker runs by itself", c.Name)
		}
		if c.Kind == columnMain {
			continue
		}
		if !slices.ContainsFunc(s.Columns, func(o Column) bool { return o.CPU == c.CPU && o.Kind == columnMain }) {
			return fmt.Errorf("%s: there is no column cpu%d that it could interrupt", c.Name, c.CPU)
		}
		for _, a := range c.Actions {
			if a.Verb != "call" {
				return fmt.Errorf("%s: %s: an interrupt can only call", c.Name, a)
			}
		}
	}
	for _, c := range slices.Concat(s.Exists, s.Forbidden) {
		for _, v := range c {
			if names[v.Of] == "probe" && slices.Contains(probeValues, v.What) ||
				columnRule.MatchString(v.Of) && slices.Contains(cpuValues, v.What) {
				continue
			}
			return fmt.Errorf("%s.%s is nothing that a run counts", v.Of, v.What)
		}
	}
	for _, p := range s.Probes {
		if names[p.Func] != "function" {
			return fmt.Errorf("probe %s: there is no function %q", p.Name, p.Func)
		}
	}
	for _, d := range s.Sites {
		if names[d.Func] != "function" {
			return fmt.Errorf("site %s: there is no function %q", d.Name, d.Func)
		}
	}
	return nil
}

// The names of a run's counters, of a probe and of a CPU.
var (
	probeValues = []string{"hits", "missed", "returns", "optimized"}
	cpuValues   = []string{"traps", "detours", "pokes"}
)

// Expected is the verdict that the scenario says for a profile.
func (s *Scenario) Expected(kernel string) Verdict {
	for _, name := range []string{kernel, ""} {
		if v := s.Expect[name]; v != "" {
			return Verdict(v)
		}
	}
	return OK
}

// cpus returns the number of CPUs that the scenario needs, without the worker's.
func (s *Scenario) cpus() int {
	n := 0
	for _, c := range s.Columns {
		n = max(n, c.CPU+1)
	}
	return n
}

// nop5 is the no-operation of sites.
const nop5 = "0f1f440000"

// mnemonics are the instructions that have a name; others are written as hex.
var mnemonics = map[string]string{
	"mov": "4889f8", "add": "4883c001", "sub": "4883e801", "nop": "90", "nop5": nop5, "ret": "c3",
	"cli": "fa", "sti": "fb", "push": "50", "pop": "58", "inc": "48ffc0", "calla": "ffd0", "brk": "cc", "exit": "f4", "fentry": nop5,
}

// assemble are the bytes of an instruction at an offset of the whole text; at
// says where a function is.
func assemble(insn string, off int, at func(name string) (int, bool)) ([]byte, error) {
	name, arg, has := strings.Cut(insn, ":")
	if !has {
		if h, ok := mnemonics[insn]; ok {
			insn = h
		}
		b, err := hex.DecodeString(insn)
		if err != nil || len(b) == 0 || len(b) > 15 {
			return nil, fmt.Errorf("%q is no instruction: a name, or up to 15 bytes in hex", insn)
		}
		return b, nil
	}
	var b []byte
	switch name {
	case "call":
		b = []byte{0xe8}
	case "cscall":
		b = []byte{0x2e, 0xe8}
	case "jmp":
		b = []byte{0xe9}
	case "lea":
		b = []byte{0x48, 0x8d, 0x05}
	default:
		return nil, fmt.Errorf("%q is no instruction: call:F, cscall:F, jmp:F, lea:F", insn)
	}
	to, ok := at(arg)
	if !ok {
		return nil, fmt.Errorf("%s: there is no function %q", insn, arg)
	}
	rel := int32(to - off - len(b) - 4)
	return append(b, byte(rel), byte(rel>>8), byte(rel>>16), byte(rel>>24)), nil
}
