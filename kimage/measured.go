package kimage

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
		img.setFact(Fact{Name: "measuring", Value: "incomplete", Evidence: err.Error()})
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
	f := Fact{Name: a.Field, Value: a.Value, Evidence: why, From: Measured}
	// An answer other than that of the image, its configuration or the row of its release is worth
	// a line.
	switch was := img.Fact(a.Field); {
	case was.From != "" && was.Value != c.Field(a.Field):
		f.Against = append(f.Against, Witness{was.Value, was.Evidence, was.From})
	case was.From == "" && before != "" && before != c.Field(a.Field):
		f.Against = append(f.Against, Witness{before, "profile " + c.Name, Dated})
	}
	img.setFact(f)
}

// setFact replaces the fact of that name, or adds it.
func (img *Image) setFact(f Fact) {
	for i := range img.facts {
		if img.facts[i].Name == f.Name {
			img.facts[i] = f
			return
		}
	}
	img.facts = append(img.facts, f)
}

// Standing says in a few words how far the profile can be trusted: whether its
// release is one that was compared with a kernel, and whether the image's own
// functions were asked.
func (img *Image) Standing() string {
	if img.opts.Profile != nil {
		return string(Asked)
	}
	word := img.Fact(factStanding).Value
	if word == "" {
		word = "of no known release"
	}
	for _, f := range img.facts {
		if f.From == Measured {
			return word + ", measured"
		}
	}
	return word + ", not measured"
}

// Behaviour lists every field of the profile with its evidence. Fields that nothing in
// the image confirms come from the release, or from a requested profile.
func (img *Image) Behaviour() []Fact {
	rest := Fact{Evidence: "profile " + img.profile.Name, From: Dated}
	if img.opts.Profile != nil {
		rest.From = Asked
	}
	var list []Fact
	for _, f := range img.profile.Fields() {
		fact := img.Fact(f.Name)
		if fact.From == "" || rest.From == Asked {
			fact = rest
		}
		fact.Name, fact.Value = f.Name, f.Value
		list = append(list, fact)
	}
	return list
}
