package profile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Field is one field of a Config by its path, such as Check.PaddingInt3, and its
// value as text.
type Field struct{ Name, Value string }

// Fields lists every field of behaviour in the order of the declarations. The
// name of the profile and its line for people are none.
func (c *Config) Fields() []Field {
	var list []Field
	walk(reflect.ValueOf(c).Elem(), "", func(name string, v reflect.Value) {
		list = append(list, Field{name, text(name, v)})
	})
	return list
}

// Field returns one field's value as Fields lists it, "" if there is no such field.
func (c *Config) Field(name string) (value string) {
	walk(reflect.ValueOf(c).Elem(), "", func(n string, v reflect.Value) {
		if n == name {
			value = text(name, v)
		}
	})
	return value
}

// SetField changes a field, given as Fields lists it.
func (c *Config) SetField(name, value string) error {
	err := fmt.Errorf("profile: no field %q", name)
	walk(reflect.ValueOf(c).Elem(), "", func(n string, v reflect.Value) {
		if n == name {
			err = set(name, v, value)
		}
	})
	return err
}

// walk visits the fields that are no structs.
func walk(v reflect.Value, path string, visit func(name string, v reflect.Value)) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case path == "" && f.Kind() == reflect.String:
		case f.Kind() == reflect.Struct && f.Type() != boostTable:
			walk(f, path+name+".", visit)
		default:
			visit(path+name, f)
		}
	}
}

// text returns a field's value: a name if its type has names, and an address in hexadecimal.
func text(name string, v reflect.Value) string {
	if names := names[v.Type()]; names != nil && int(v.Int()) < len(names) {
		return names[v.Int()]
	}
	if v.Kind() == reflect.Uint64 {
		return fmt.Sprintf("%#x", v.Uint())
	}
	return fmt.Sprint(v.Interface())
}

func set(name string, v reflect.Value, value string) error {
	bad := fmt.Errorf("profile: %s cannot be %q", name, value)
	switch v.Kind() {
	case reflect.Struct:
		t, err := ParseBoostTable(value)
		if err != nil {
			return bad
		}
		v.Set(reflect.ValueOf(t))
	case reflect.Bool:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return bad
		}
		v.SetBool(on)
	case reflect.Uint64:
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			return bad
		}
		v.SetUint(n)
	case reflect.String:
		v.SetString(value)
	case reflect.Int:
		n := slices.Index(names[v.Type()], value)
		if n < 0 {
			var err error
			if n, err = strconv.Atoi(value); err != nil || names[v.Type()] != nil {
				return bad
			}
		}
		v.SetInt(int64(n))
	default:
		return bad
	}
	return nil
}

// boostTable is the one struct that is a field by itself.
var boostTable = reflect.TypeFor[BoostTable]()

// names are the names of the values of each type that has a few.
var names = map[reflect.Type][]string{
	reflect.TypeFor[BoostRule]():        {"BoostNever", "Boost44", "Boost58", "Boost54", "Boost61", "Boost612"},
	reflect.TypeFor[DefaultMaxActive](): {"MaxActivePossible", "MaxActiveCPUs", "MaxActiveNRCPUs"},
	reflect.TypeFor[FrameCheck]():       {"FrameUnchecked", "FramePassedOver", "FrameBug", "FrameEnds"},
	reflect.TypeFor[SampleStyle]():      {"SampleBare", "SampleSymbol", "SampleFunc"},
	reflect.TypeFor[FetchTypes]():       {"Types33", "Types44", "Types49", "Types58", "Types61", "Types612"},
}

// String is the constant's name.
func (r BoostRule) String() string { return text("", reflect.ValueOf(r)) }

// String is the constant's name.
func (m DefaultMaxActive) String() string { return text("", reflect.ValueOf(m)) }

// String is the constant's name.
func (f FrameCheck) String() string { return text("", reflect.ValueOf(f)) }

// String is the constant's name.
func (s SampleStyle) String() string { return text("", reflect.ValueOf(s)) }

// String is the constant's name.
func (t FetchTypes) String() string { return text("", reflect.ValueOf(t)) }
