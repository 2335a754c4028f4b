package sdt

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Argument says where a tracepoint's argument is: a constant, a register, or memory at Base + Index<<Scale + Value.
type Argument struct {
	// Size is in bytes: 1, 2, 4 or 8.
	Size   int
	Signed bool
	Memory bool
	// Base and Index are registers by their names of 64 bits, "" for none; without Base, Value is the argument.
	Base, Index string
	Scale       int
	Value       int64
}

// ErrArgument: the argument is not of a form that is read here.
var ErrArgument = errors.New("an argument that cannot be read")

// form matches an argument: -4@$5, 8@%rax, 8@-16(%rbp), 4@(%rax,%rcx,4).
var form = regexp.MustCompile(`^(-?)([1248])@(?:\$(-?\d+)|%(\w+)|(-?\d+)?\(%(\w+)(?:,%(\w+)(?:,([1248]))?)?\))$`)

// ReadArguments reads a note's arguments.
func ReadArguments(text string) (list []Argument, err error) {
	for word := range strings.FieldsSeq(text) {
		a, err := argument(word)
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, word)
		}
		list = append(list, a)
	}
	return list, nil
}

func argument(word string) (a Argument, err error) {
	m := form.FindStringSubmatch(word)
	if m == nil {
		return a, ErrArgument
	}
	a.Size, a.Signed = int(m[2][0]-'0'), m[1] != ""
	value := m[3]
	switch {
	case m[4] != "":
		a.Base = register(m[4])
	case m[6] != "":
		a.Memory, value, a.Base = true, m[5], register(m[6])
		if m[7] != "" {
			a.Index = register(m[7])
		}
		a.Scale = map[string]int{"2": 1, "4": 2, "8": 3}[m[8]]
	}
	if m[3] == "" && a.Base == "" || m[7] != "" && a.Index == "" {
		return a, ErrArgument
	}
	if value != "" {
		if a.Value, err = strconv.ParseInt(value, 10, 64); err != nil {
			return a, ErrArgument
		}
	}
	return a, nil
}

// register is the name of 64 bits of a register, "" if it is none of the general ones.
func register(name string) string { return wides[name] }

// wides has the names of each general register.
var wides = func() map[string]string {
	all := map[string]string{"rip": "rip", "eip": "rip"}
	for _, r := range []string{"ax", "bx", "cx", "dx", "si", "di", "bp", "sp"} {
		all["r"+r], all["e"+r], all[r] = "r"+r, "r"+r, "r"+r
		all[strings.TrimSuffix(r, "x")+"l"] = "r" + r // al, sil
	}
	for n := 8; n < 16; n++ {
		wide := "r" + strconv.Itoa(n)
		for _, part := range []string{"", "d", "w", "b"} {
			all[wide+part] = wide
		}
	}
	return all
}()
