package bpftrace

import (
	"slices"
	"strconv"
	"strings"
)

// environment are the settings that bpftrace also reads from its environment, as BPFTRACE_NAME. They count more than the
// script's own.
var environment = []string{
	"max_strlen", "max_map_keys", "max_probes", "max_bpf_progs", "max_cat_bytes", "max_type_res_iterations", "log_size", "perf_rb_pages",
	"stack_mode", "str_trunc_trailer", "cache_user_symbols", "cpp_demangle", "lazy_symbolication",
}

// surround reads the environment into the settings, and returns the names that it sets.
func (c *checker) surround() (set []string) {
	for _, name := range environment {
		variable := "BPFTRACE_" + strings.ToUpper(name)
		i := slices.IndexFunc(c.o.Env, func(v string) bool { return strings.HasPrefix(v, variable+"=") })
		if i < 0 {
			continue
		}
		value := c.o.Env[i][len(variable)+1:]
		switch settings[name] {
		case "int":
			n, ok := leadingNumber(value)
			if !ok {
				c.plain("Env var '%s' did not contain a valid uint64_t, or was zero-valued.", variable)
			}
			value = strconv.FormatUint(n, 10)
			c.limit(name, n)
		case "bool":
			if value != "0" && value != "1" {
				c.plain("Env var '%s' did not contain a valid value (0 or 1).", variable)
			}
		}
		switch {
		case name == "stack_mode" && stackModes[value] == 0:
			c.plain("%s is not a valid StackMode", value)
		case choices[name] != nil && !slices.Contains(choices[name].values, value):
			c.plain("%s", choices[name].refusal(name))
		}
		c.config[name] = value
		set = append(set, name)
	}
	return set
}

// leadingNumber is the number that a text begins with, as C++'s stoull reads it.
func leadingNumber(text string) (uint64, bool) {
	text, negative := strings.CutPrefix(text, "-")
	n, err := strconv.ParseUint(text[:len(text)-len(strings.TrimLeft(text, "0123456789"))], 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}
