//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/bounded"
)

// encode writes a value of a contract into the bytes of a variable, as the variable's type says.
func encode(to []byte, t btf.Type, text json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	clear(to)
	return put(to, t, v, 0)
}

// errType: a value is not of the variable's type.
var errType = errors.New("a value of another type")

func put(to []byte, t btf.Type, v any, depth int) error {
	if depth > bounded.BPFNested {
		return fmt.Errorf("%w: types in each other without end", errType)
	}
	size, err := btf.Sizeof(t)
	if err != nil {
		return err
	}
	if size > len(to) {
		return fmt.Errorf("%w: %s has %d bytes, and there is room for %d", errType, typeName(t), size, len(to))
	}
	to = to[:size]
	switch u := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		return putNumber(to, t, u.Encoding == btf.Signed, v)
	case *btf.Pointer:
		return putNumber(to, t, false, v)
	case *btf.Enum:
		if name, ok := v.(string); ok {
			for _, e := range u.Values {
				if e.Name == name {
					return putNumber(to, t, u.Signed, json.Number(enumText(u, e.Value)))
				}
			}
		}
		return putNumber(to, t, u.Signed, v)
	case *btf.Float:
		return putFloat(to, t, v)
	case *btf.Array:
		return putArray(to, u, v, depth)
	case *btf.Struct, *btf.Union:
		members, ok := v.(map[string]any)
		if !ok {
			return fmt.Errorf("%w: %s wants an object", errType, typeName(t))
		}
		for name, inner := range members {
			m, at, ok := member(u, name, 0)
			switch {
			case !ok:
				return fmt.Errorf("%w: %s has no member %s", errType, typeName(t), name)
			case m.BitfieldSize != 0:
				return fmt.Errorf("%w: %s.%s is a bit field", errType, typeName(t), name)
			case at/8 > uint64(len(to)):
				return fmt.Errorf("%w: %s.%s is outside of it", errType, typeName(t), name)
			}
			if err := put(to[at/8:], m.Type, inner, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: %s cannot be set", errType, typeName(t))
}

// enumText is an enumerator's value as a number.
func enumText(e *btf.Enum, v uint64) string {
	switch {
	case e.Signed && e.Size == 4:
		return strconv.FormatInt(int64(int32(v)), 10)
	case e.Signed:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatUint(v, 10)
}

// putNumber writes true, false, a number, or a number in a text, in each of Go's notations.
func putNumber(to []byte, t btf.Type, signed bool, v any) error {
	text := ""
	switch v := v.(type) {
	case bool:
		text = "0"
		if v {
			text = "1"
		}
	case json.Number:
		text = v.String()
	case string:
		text = v
	default:
		return fmt.Errorf("%w: %s wants a number", errType, typeName(t))
	}
	bits := 8 * len(to)
	var n uint64
	if signed {
		i, err := strconv.ParseInt(text, 0, min(bits, 64))
		if err != nil {
			return fmt.Errorf("%w: %s is no number of type %s", errType, text, typeName(t))
		}
		n = uint64(i)
	} else {
		u, err := strconv.ParseUint(text, 0, min(bits, 64))
		if err != nil {
			return fmt.Errorf("%w: %s is no number of type %s", errType, text, typeName(t))
		}
		n = u
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	copy(to, b[:])
	return nil
}

func putFloat(to []byte, t btf.Type, v any) error {
	n, ok := v.(json.Number)
	if !ok {
		return fmt.Errorf("%w: %s wants a number", errType, typeName(t))
	}
	f, err := n.Float64()
	switch {
	case err != nil:
		return err
	case len(to) == 4:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(f)))
	case len(to) == 8:
		binary.LittleEndian.PutUint64(to, math.Float64bits(f))
	default:
		return fmt.Errorf("%w: %s", errType, typeName(t))
	}
	return nil
}

func putArray(to []byte, a *btf.Array, v any, depth int) error {
	if text, ok := v.(string); ok && isChar(a.Type) {
		if len(text) > len(to) {
			return fmt.Errorf("%w: a text of %d bytes in %s", errType, len(text), typeName(a))
		}
		copy(to, text)
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) > int(a.Nelems) {
		return fmt.Errorf("%w: %s wants a list of up to %d values", errType, typeName(a), a.Nelems)
	}
	size, err := btf.Sizeof(a.Type)
	if err != nil {
		return err
	}
	for i, inner := range list {
		if err := put(slices.Clip(to[i*size:(i+1)*size]), a.Type, inner, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// isChar reports whether arrays of a type are texts.
func isChar(t btf.Type) bool {
	i, ok := btf.UnderlyingType(t).(*btf.Int)
	return ok && i.Size == 1 && (i.Encoding == btf.Char || i.Name == "char" || i.Name == "signed char")
}
