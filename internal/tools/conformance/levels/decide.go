//go:build unicorn && cgo && linux && amd64

package levels

import (
	"kprobelab"
	"kprobelab/internal/tools/conformance/asked"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/tracing"
)

// candidate is a value that a field can have.
type candidate struct {
	value   string
	answers []asked.Answer
}

// decider finds which values give a kernel's answers.
type decider struct {
	img    *kimage.Image
	ops    []asked.Op
	theirs []asked.Answer
}

// settle changes the profile of each field to the value that fits best, and returns
// the fields of which exactly one value fits everywhere. The fields are gone through
// twice: a use of a file can depend on two of them.
func (d *decider) settle(rules *profile.Config) (map[string]string, error) {
	found := map[string]string{}
	for pass := range 2 {
		for _, f := range fields {
			value, sure, err := d.decide(rules, f)
			if err != nil {
				return nil, err
			}
			if value != "" {
				if err := rules.SetField(f.name, value); err != nil {
					return nil, err
				}
			}
			if pass == 1 && sure {
				found[f.name] = value
			}
		}
	}
	return found, nil
}

// decide runs the uses under each value of the field. The value is empty where no use
// tells the values apart, or several fit equally well; sure says that it fits everywhere.
func (d *decider) decide(rules *profile.Config, f field) (value string, sure bool, err error) {
	list := make([]candidate, len(f.values))
	for i, v := range f.values {
		list[i].value = v
		if list[i].answers, err = d.emulate(rules, f.name, v); err != nil {
			return "", false, err
		}
	}
	wrong := make([]int, len(list))
	for op := range d.ops {
		if !apart(list, op) {
			continue
		}
		for i := range list {
			if !asked.Same(d.theirs[op], list[i].answers[op]) {
				wrong[i]++
			}
		}
	}
	best, ties := 0, 0
	for i := range list {
		switch {
		case wrong[i] < wrong[best]:
			best, ties = i, 0
		case i != best && wrong[i] == wrong[best]:
			ties++
		}
	}
	if ties > 0 {
		return "", false, nil
	}
	return list[best].value, wrong[best] == 0, nil
}

// apart reports whether the values answer the use differently.
func apart(list []candidate, op int) bool {
	for i := range list[1:] {
		if !asked.Same(list[0].answers[op], list[i+1].answers[op]) {
			return true
		}
	}
	return false
}

// emulate makes the uses here, with the field at the value.
func (d *decider) emulate(rules *profile.Config, name, value string) ([]asked.Answer, error) {
	c := *rules
	if err := c.SetField(name, value); err != nil {
		return nil, err
	}
	l, err := kprobelab.New(d.img, &kprobelab.Options{CPUs: 2, Rules: &c})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	t, err := tracing.New(l.Kprobes, l.Machine, &tracing.Options{Source: d.img})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	return asked.Run(t, d.ops), nil
}
