package definition

import (
	"strings"

	"kprobelab/errno"
)

// What 6.12 takes from BTF: $arg* and $argN become parameters by name, and an
// argument without a type gets the parameter's.

// maxBTFText bounds what the expanded words take together (MAX_BTF_ARGS_LEN).
const maxBTFText = 128 * 32

// expand puts parameters in the place of the words that begin with $arg
// (traceprobe_expand_meta_args).
func (x *context) expand(args []string) ([]string, error) {
	star, any, err := x.findArgs(args)
	if err != nil || !any {
		return args, err
	}
	x.asked = true
	if !x.prototyped() || len(x.proto.Params) == 0 {
		if star >= 0 {
			f := x.at(star, &fault{NosupBTFArg, errno.EOPNOTSUPP, 0})
			if x.c.StarRefused {
				return nil, f
			}
			x.noted = f
		}
		return args, nil
	}
	return x.replace(args, star)
}

// at makes a refusal at argument number i.
func (x *context) at(i int, f *fault) *Error { return x.line.Refuse(i+2, f.offset, f.id, f.errno) }

// hasArgs: parameters can be fetched at this place.
func (x *context) hasArgs() bool { return x.entry || x.exit && x.c.ExitArgs && !x.user }

// findArgs looks for words that begin with $arg: star is the index of $arg*;
// any says whether there is such a word at all.
func (x *context) findArgs(args []string) (star int, any bool, err error) {
	star = -1
	for i, a := range args {
		rest, ok := strings.CutPrefix(a, "$arg")
		switch {
		case !ok:
			continue
		case !x.hasArgs():
			return 0, false, x.at(i, bad(0, NofentryArgs))
		case isDigit(first(rest)):
		case first(rest) != '*':
			return 0, false, x.at(i, bad(0, BadVar))
		case star >= 0:
			return 0, false, x.at(i, bad(0, DoubleArgs))
		default:
			star = i
		}
		any = true
	}
	return star, any, nil
}

func (x *context) replace(args []string, star int) ([]string, error) {
	var out []string
	room := maxBTFText
	for i, a := range args {
		rest, ok := strings.CutPrefix(a, "$arg")
		if !ok {
			out = append(out, a)
			continue
		}
		from, to, typ := 0, len(x.proto.Params), ""
		if i != star {
			n, after := simpleStrtoul(rest)
			switch {
			case after != "" && after[0] != ':':
				return nil, x.at(i, &fault{BadVar, errno.ENOENT, 0})
			case n == 0 && x.c.ArgZero:
				return nil, x.at(i, &fault{NoBTFEntry, errno.ENOENT, 0})
			case n == 0:
				return nil, x.at(i, bad(0, BadArgNum))
			}
			from, typ = int(min(n, MaxArgs))-1, after
			to = from + 1
		}
		for n := from; n < to; n++ {
			text, err := x.named(i, n, typ)
			if err != nil {
				return nil, err
			}
			if room -= len(text) + 1; room < 0 {
				return nil, x.at(i, &fault{Args2Long, errno.E2BIG, 0})
			}
			out = append(out, text)
		}
	}
	return out, nil
}

// named returns the word that stands for parameter number n: its name, then typ.
// A refusal names argument number i.
func (x *context) named(i, n int, typ string) (string, error) {
	switch {
	case n >= len(x.proto.Params):
		return "", x.at(i, &fault{NoBTFArg, errno.ENOENT, 0})
	case x.proto.Params[n].Name == "":
		return "", x.at(i, &fault{NoBTFEntry, errno.ENOENT, 0})
	}
	return x.proto.Params[n].Name + typ, nil
}
