package profile

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Change is one row of the table of releases: in which releases a field of
// Config has a value.
type Change struct {
	// Field is the field's name, as in Config.
	Field string
	// Value is the field's value there; nil stands for true. In other releases the field has the
	// zero value, or the value of another row of the field.
	Value any
	// From is the first release with the value, Until the first without it again. Zero is open: the
	// field always had it, or still has it.
	From, Until Version
	// Stable has, per stable series, the first release that does as mainline
	// does after the change: after From, or after Until in a series between.
	Stable []Version
	// Option is the configuration option that decides where the configuration is known. The
	// releases are then the releases of Debian's configuration.
	Option string
	// Note explains the field if its name does not, or says which dates are not known.
	Note string
}

// Changes is the table, in the order in which it is applied.
func Changes() []Change { return append([]Change(nil), changes...) }

// holds reports whether the field has the value in a release.
func (s *Change) holds(v Version) bool {
	on := !v.before(s.From) && (s.Until == Version{} || v.before(s.Until))
	for _, from := range s.Stable {
		if from.Major == v.Major && from.Minor == v.Minor && !v.before(from) {
			return v.before(s.From) // the next change after the series
		}
	}
	return on
}

// Backports divides Stable into the first releases of the series that adopted the value, and the
// first releases of the series that dropped it.
func (s *Change) Backports() (began, ended []Version) {
	for _, v := range s.Stable {
		if v.before(s.From) {
			began = append(began, v)
		} else {
			ended = append(ended, v)
		}
	}
	return began, ended
}

// apply sets the field if it has the value in the release.
func (s *Change) apply(c *Config, v Version) {
	if !s.holds(v) {
		return
	}
	f := field(c, s.Field)
	if s.Value == nil {
		f.SetBool(true)
		return
	}
	f.Set(reflect.ValueOf(s.Value).Convert(f.Type()))
}

// Ended is the first release of mainline that has not a field any more; false where it
// still is, or never was. Texts that name a release take it from here.
func Ended(field string) (Version, bool) {
	var end Version
	for i := range changes {
		if c := &changes[i]; c.Field == field && end.before(c.Until) {
			end = c.Until
		}
	}
	return end, end != Version{}
}

// field is a field of a Config by its dotted name.
func field(c *Config, name string) reflect.Value {
	at, ok := fieldIndexes()[name]
	if !ok {
		panic(fmt.Sprintf("BUG: Config has no field %s", name))
	}
	return reflect.ValueOf(c).Elem().FieldByIndex(at)
}

// fieldIndexes maps the dotted name of each field to its place: a search by name at each change takes a
// millisecond for a profile.
var fieldIndexes = sync.OnceValue(func() map[string][]int {
	places := map[string][]int{}
	var list func(t reflect.Type, path string, at []int)
	list = func(t reflect.Type, path string, at []int) {
		for i := range t.NumField() {
			f, at := t.Field(i), append(slices.Clone(at), i)
			places[path+f.Name] = at
			if f.Type.Kind() == reflect.Struct {
				list(f.Type, path+f.Name+".", at)
			}
		}
	}
	list(reflect.TypeFor[Config](), "", nil)
	return places
})

// ForRelease returns the profile of a release by the table of releases, under the name of the
// nearest named profile. A configuration can decide otherwise.
func ForRelease(v Version) *Config {
	c := &Config{Name: v.Nearest()}
	c.Describes = describe(c.Name)
	for i := range changes {
		changes[i].apply(c, v)
	}
	return c
}

// SetTrapFlag takes the stepping, the slots and the emulation of a release that
// steps by the trap flag, or by an int3: the three came together.
func SetTrapFlag(c *Config, on bool) {
	if c.Step.TrapFlag == on {
		return
	}
	p := ForRelease(Version{5, 10, AnyPatch})
	if on {
		p = ForRelease(Version{5, 8, AnyPatch})
	}
	c.Step, c.Slot = p.Step, p.Slot
}
