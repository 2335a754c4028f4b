package stap

import (
	"fmt"
	"strings"
)

// libraryMacros are the macros of SystemTap's library, which every script may use.
const libraryMacros = `
@define choose_defined(a, b) %( (@defined(@a) ? @a : @b) %)
@define task(a) %( @cast(@a, "task_struct", "kernel<linux/sched.h>") %)
@define ulong_cast(a) %( (@a & 0xffffffffffffffff) %)
@define uint_cast(a) %( (@a & 0xffffffff) %)
@define offsetof(t, m) %( ( & @cast(0, @t, "kernel") -> @m ) %)
@define module_offsetof(l, t, m) %( ( & @cast(0, @t, @l) -> @m ) %)
@define container_of(p, t, m) %( @cast(@p - @offsetof(@t, @m), @t) %)
@define module_container_of(p, l, t, m) %( @cast(@p - @module_offsetof(@l, @t, @m), @t, @l) %)
@define cast_sizeof(t) %( ( & @cast(0, @t) [1] ) %)
@define cast_module_sizeof(l, t) %( ( & @cast(0, @t, @l) [1] ) %)
@define type_defined(t) %( @defined(& @cast(0, @t)) %)
@define type_member_defined(t, m) %( @defined(& @cast(0, @t, "kernel") -> @m) %)
@define this1 %( __this_var1[tid()] %)
@define this2 %( __this_var2[tid()] %)
@define this3 %( __this_var3[tid()] %)
@define this4 %( __this_var4[tid()] %)
@define this5 %( __this_var5[tid()] %)
@define this6 %( __this_var6[tid()] %)
@define this7 %( __this_var7[tid()] %)
@define this8 %( __this_var8[tid()] %)
@define MAXSTRINGLEN %( 512 %)
`

// prometheusMacros write an array with so many keys in Prometheus's text format, a line for each
// element: name{label1="key1",label2="key2"} value. _map has a function applied to the value and
// to each key; _unquoted leaves the quotes to these.
func prometheusMacros() string {
	var b strings.Builder
	for n := 1; n <= 8; n++ {
		numbered := func(format string, from int) string {
			var list []string
			for i := from; i <= n; i++ {
				list = append(list, fmt.Sprintf(format, i))
			}
			return strings.Join(list, ",")
		}
		for _, kind := range []struct{ suffix, key string }{{"_map", "string_quoted(@m%d(_v%d))"}, {"_map_unquoted", "@m%d(_v%d)"}} {
			line := "@name . \"{\""
			for i := 1; i <= n; i++ {
				if i > 1 {
					line += " . \",\""
				}
				line += fmt.Sprintf(" . @c%d . \"=\" . "+kind.key, i, i, i)
			}
			fmt.Fprintf(&b, "@define prometheus_dump_array%d%s(a,name,%s,%s) %%( foreach (_v = [%s] in @a) { $value .= (%s . \"} \" . text_str(@m0(_v)) . \"\\n\") } %%)\n",
				n, kind.suffix, numbered("c%d", 1), numbered("m%d", 0), numbered("_v%d", 1), line)
		}
		fmt.Fprintf(&b, "@define prometheus_dump_array%d(a,name,%s) %%( @prometheus_dump_array%d_map(@a,@name,%s%s) %%)\n",
			n, numbered("c%d", 1), n, numbered("@c%d", 1), strings.Repeat(",sprint", n+1))
	}
	return b.String()
}

// missingMacros are macros of SystemTap's library that are not here, by the beginning of their
// names, and why.
var missingMacros = map[string]string{"json_": "what it writes for probes of procfs, json_data, is not there"}
