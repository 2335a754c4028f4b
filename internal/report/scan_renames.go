package report

import "strings"

// splitSuffixes are the compiler's suffixes of parts of a function, which other functions keep
// apart; the others (.isra.0, .constprop.0, .llvm.123) are of the function as a whole.
var splitSuffixes = []string{"cold", "part"}

// family is a function's name without the suffixes that the compiler gives as it likes. Parts of a
// function are families of their own.
func family(name string) string {
	base, rest, _ := strings.Cut(name, ".")
	if base == "" {
		return name
	}
	for _, part := range splitSuffixes {
		for word := range strings.SplitSeq(rest, ".") {
			if word == part {
				base += "." + part
				break
			}
		}
	}
	return base
}

// joined pairs functions that only one of the scans has, and that are of one family, in their
// order.
func joined(before, after *ScanFile) map[functionKey]functionKey {
	added := map[string][]functionKey{}
	for _, k := range after.keys {
		if k.name != "" && before.functions[k] == nil {
			added[family(k.name)] = append(added[family(k.name)], k)
		}
	}
	pairs := map[functionKey]functionKey{}
	for _, k := range before.keys {
		if k.name == "" || after.functions[k] != nil {
			continue
		}
		if list := added[family(k.name)]; len(list) > 0 && list[0].name != k.name {
			pairs[k], added[family(k.name)] = list[0], list[1:]
		}
	}
	return pairs
}
