package bpftrace

import (
	"slices"
	"strconv"
	"strings"
)

// environment lists the settings that bpftrace also reads from its environment, as BPFTRACE_NAME, in its order. They
// override the script's own settings.
var environment = []string{
	"max_strlen", "str_trunc_trailer", "cpp_demangle", "lazy_symbolication", "max_map_keys", "max_probes", "max_bpf_progs", "log_size", "perf_rb_pages",
	"max_type_res_iterations", "max_cat_bytes", "cache_user_symbols", "stack_mode",
}

// surround reads the environment into the settings, before the script is read. The first mistake ends it.
func (c *checker) surround() {
	c.config, c.maxStr, c.keys = map[string]string{}, 1024, 4096
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
		case choices[name] != nil && !choices[name].takes(value):
			c.plain("%s", choices[name].refusal(name))
		case choices[name] != nil && value == choices[name].keeps:
			continue
		}
		if c.errors() > 0 {
			return
		}
		c.config[name] = value
	}
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
