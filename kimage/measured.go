package kimage

import (
	"kprobelab/kimage/evidence"
	"kprobelab/kimage/internal/infer"
)

// Answer is the value of a profile's field that an image's own functions gave.
type Answer struct {
	// Field and Value are as profile.Config's Fields has them.
	Field string `json:"field"`
	Value string `json:"value"`
	// Evidence names the function that ran, and its input.
	Evidence string `json:"evidence"`
}

// measure lets the image's own functions decide, if Options.Measure is set. They win
// over the release and the symbols. A requested profile is left alone.
func (img *Image) measure() {
	if img.opts.Measure == nil || img.opts.Profile != nil || img.kind != KindKernel {
		return
	}
	answers, err := img.opts.Measure(img)
	for _, a := range answers {
		img.answer(a)
	}
	if err != nil {
		img.facts.Set(evidence.Fact{Name: "measuring", Value: "incomplete", Evidence: err.Error()})
	}
}

// answer takes one answer. A value that the field cannot have is not believed.
func (img *Image) answer(a Answer) {
	c := *img.profile
	before := c.Field(a.Field)
	if err := c.SetField(a.Field, a.Value); err != nil {
		return
	}
	why := a.Evidence
	switch {
	case before == c.Field(a.Field):
	case before == "":
		why += "; the release gives no value"
	default:
		why += "; it was taken for " + before
	}
	img.profile = &c
	f := evidence.Fact{Name: a.Field, Value: a.Value, Evidence: why, From: evidence.Measured}
	// An answer other than that of the image, its configuration or the row of its release is worth
	// a line.
	switch was := img.Fact(a.Field); {
	case was.From != "" && was.Value != c.Field(a.Field):
		f.Against = append(f.Against, evidence.Says(was.Value, was.Evidence, was.From))
	case was.From == "" && before != "" && before != c.Field(a.Field):
		f.Against = append(f.Against, evidence.Says(before, "profile "+c.Name, evidence.Dated))
	}
	img.facts.Set(f)
}

// Standing says in a few words how far the profile can be trusted: whether its
// release is one whose profile was compared field by field, and whether the image's own
// functions were asked.
func (img *Image) Standing() string {
	if img.opts.Profile != nil {
		return string(evidence.Asked)
	}
	word := img.Fact(infer.FactStanding).Value
	if word == "" {
		word = "of no known release"
	}
	for _, f := range img.facts {
		if f.From == evidence.Measured {
			return word + ", measured"
		}
	}
	return word + ", not measured"
}

// Behaviour lists every field of the profile with its evidence. Fields that nothing in
// the image confirms come from the release, or from a requested profile.
func (img *Image) Behaviour() []evidence.Fact {
	rest := evidence.Fact{Evidence: "profile " + img.profile.Name, From: evidence.Dated}
	if img.opts.Profile != nil {
		rest.From = evidence.Asked
	}
	var list []evidence.Fact
	for _, f := range img.profile.Fields() {
		fact := img.Fact(f.Name)
		if fact.From == "" || rest.From == evidence.Asked {
			fact = rest
		}
		fact.Name, fact.Value = f.Name, f.Value
		list = append(list, fact)
	}
	return list
}
