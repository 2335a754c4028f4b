package bpftrace

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A setting that is neither 0 nor 1 is told, and the script goes on without it.
func TestSettingsThatAreNeitherOffNorOn(t *testing.T) {
	for settings, want := range map[string]string{
		"cpp_demangle = 7":        "ERROR: Invalid value for cpp_demangle. Needs to be 0 or 1. Value: 7\n",
		"probe_inline = -1":       "ERROR: Invalid value for probe_inline. Needs to be 0 or 1. Value: -1\n",
		"print_maps_on_exit = 2":  "ERROR: Invalid value for print_maps_on_exit. Needs to be 0 or 1. Value: 2\n",
		"lazy_symbolication = 10": "ERROR: Invalid value for lazy_symbolication. Needs to be 0 or 1. Value: 10\n",
		"use_blazesym = 1":        "",
	} {
		s, err := Analyze("stdin", "config = { "+settings+" } BEGIN { exit(); }", &Options{}, nil)
		require.NoError(t, err, settings)
		require.Equal(t, want, s.Warnings, settings)
	}
}

// What bpftrace 0.23.2 says to variables of its environment.
func TestSettingsFromTheEnvironment(t *testing.T) {
	said := func(env []string, text string) string {
		s, err := Analyze("stdin", text, &Options{Env: env}, nil)
		var p *Problems
		switch {
		case errors.As(err, &p):
			return p.Text()
		case err != nil:
			return err.Error()
		}
		return s.Warnings
	}
	const long, program = "BEGIN { @ = \"0123456789\"; }\n", "BEGIN { exit(); }"
	const tooLong = "stdin:1:13-25: ERROR: String is too long (over 8 bytes): 0123456789\nBEGIN { @ = \"0123456789\"; }\n            ~~~~~~~~~~~~\n"
	for name, c := range map[string]struct {
		env        []string
		text, want string
	}{
		"none":                       {nil, long, ""},
		"a_limit":                    {[]string{"BPFTRACE_MAX_STRLEN=8"}, long, tooLong},
		"a_limit_and_other_text":     {[]string{"BPFTRACE_MAX_STRLEN=8x"}, long, tooLong},
		"the_environment_counts":     {[]string{"BPFTRACE_MAX_STRLEN=8"}, "config = { max_strlen = 50 } " + program, ""},
		"no_number":                  {[]string{"BPFTRACE_MAX_STRLEN=abc"}, program, "ERROR: Env var 'BPFTRACE_MAX_STRLEN' did not contain a valid uint64_t, or was zero-valued.\n"},
		"empty":                      {[]string{"BPFTRACE_MAX_MAP_KEYS="}, program, "ERROR: Env var 'BPFTRACE_MAX_MAP_KEYS' did not contain a valid uint64_t, or was zero-valued.\n"},
		"negative_is_large":          {[]string{"BPFTRACE_MAX_STRLEN=-1"}, long, ""},
		"no_bool":                    {[]string{"BPFTRACE_CPP_DEMANGLE=2"}, program, "ERROR: Env var 'BPFTRACE_CPP_DEMANGLE' did not contain a valid value (0 or 1).\n"},
		"no_stack_mode":              {[]string{"BPFTRACE_STACK_MODE=foo"}, program, "ERROR: foo is not a valid StackMode\n"},
		"a_stack_mode":               {[]string{"BPFTRACE_STACK_MODE=raw"}, program, ""},
		"no_cache":                   {[]string{"BPFTRACE_CACHE_USER_SYMBOLS=3"}, program, "ERROR: Invalid value for cache_user_symbols: valid values are PER_PID, PER_PROGRAM, and NONE.\n"},
		"before_the_script":          {[]string{"BPFTRACE_STACK_MODE=foo"}, "BEGIN { nothing(; }", "ERROR: foo is not a valid StackMode\n"},
		"before_config":              {[]string{"BPFTRACE_CACHE_USER_SYMBOLS=x"}, "config = { stack_mode = 5 } " + program, "ERROR: Invalid value for cache_user_symbols: valid values are PER_PID, PER_PROGRAM, and NONE.\n"},
		"the_first_counts":           {[]string{"BPFTRACE_STACK_MODE=foo", "BPFTRACE_CPP_DEMANGLE=2"}, program, "ERROR: Env var 'BPFTRACE_CPP_DEMANGLE' did not contain a valid value (0 or 1).\n"},
		"a_cache_as_it_is":           {[]string{"BPFTRACE_CACHE_USER_SYMBOLS=1"}, "config = { cache_user_symbols = \"NONE\" } " + program, ""},
		"a_cache_that_is_set":        {[]string{"BPFTRACE_CACHE_USER_SYMBOLS=0"}, "config = { cache_user_symbols = \"0\" } BEGIN { }\n", "stdin:1:33-36: ERROR: \nconfig = { cache_user_symbols = \"0\" } BEGIN { }\n                                ~~~\n"},
		"a_setting_that_is_not_read": {[]string{"BPFTRACE_MISSING_PROBES=xx", "BPFTRACE_LICENSE=xx", "BPFTRACE_NO_SUCH=1"}, program, ""},
		"another_variable":           {[]string{"MAX_STRLEN=8", "XBPFTRACE_MAX_STRLEN=8"}, long, ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, said(c.env, c.text)) })
	}
}

// A string of the script is no longer than max_strlen, whoever takes it: but a format of printf, and the path of cgroupid.
func TestStringsAreNoLongerThanTheSetting(t *testing.T) {
	for call, refused := range map[string]bool{
		`printf("%s", "0123456789")`: true, `printf("0123456789")`: false, `time("%Y-%m-%d-")`: true, `printf("%s", strftime("%Y-%m-%d", nsecs))`: true,
		`cat("/etc/hostname")`: true, `cat("/%s", "0123456789")`: true, `join("0123456789")`: true, `@ = reg("0123456789")`: true, `@ = kaddr("0123456789")`: true,
		`@ = uaddr("0123456789")`: true, `@ = percpu_kaddr("0123456789")`: true, `debugf("0123456789")`: true, `system("0123456789")`: true,
		`@ = cgroupid("0123456789")`: false, `@["0123456789"] = 1`: true, `printf("%s", "0123456")`: false, `printf("%s", "01234567")`: true,
	} {
		_, err := Analyze("stdin", "config = { max_strlen = 8 } BEGIN { "+call+"; }", &Options{Unsafe: true}, nil)
		if refused {
			require.ErrorContains(t, err, "String is too long (over 8 bytes): ", call)
		} else if err != nil {
			require.NotContains(t, err.Error(), "String is too long", call)
		}
	}
}

// What bpftrace 0.23.2 says to a script's settings.
func TestSettingsOfAScript(t *testing.T) {
	for settings, want := range map[string]string{
		`max_strlen = 8; max_strlen = 20`:                      "",
		`stack_mode = raw; stack_mode = perf`:                  "",
		`symbol_source = "dwarf"; cache_user_symbols = "NONE"`: "",
		`license = "GPL"`:                                      "1:20-21: ERROR: Unrecognized config variable: license",
		`cache_user_symbols = "x"`:                             "ERROR: Invalid value for cache_user_symbols: valid values are PER_PID, PER_PROGRAM, and NONE.",
		`symbol_source = "x"`:                                  `ERROR: Invalid value for symbol_source: valid values are "dwarf" and "symbol_table".`,
		`missing_probes = "foo"`:                               `ERROR: Invalid value for missing_probes: valid values are "ignore", "warn", and "error".`,
		`stack_mode = "perf"`:                                  "1:23-24: ERROR: Invalid type for stack_mode. Type: string. Expected Type: stack_mode",
		`stack_mode = 1`:                                       "1:23-24: ERROR: Invalid type for stack_mode. Type: int. Expected Type: stack_mode",
		`stack_mode = foo`:                                     "1:23-24: ERROR: Assignment for stack_mode must be literal.",
		`missing_probes = raw`:                                 "1:27-28: ERROR: Invalid type for missing_probes. Type: stack_mode. Expected Type: string",
		`max_strlen = raw`:                                     "1:23-24: ERROR: Invalid type for max_strlen. Type: stack_mode. Expected Type: int",
		`cpp_demangle = "x"`:                                   "1:25-26: ERROR: Invalid type for cpp_demangle. Type: string. Expected Type: int",
		`max_strlen = 8, max_map_keys = 3`:                     `1:25-27: ERROR: syntax error, unexpected ",", expecting ; or }`,
		`max_strlen = 8;; `:                                    "1:25-28: ERROR: syntax error, unexpected ;, expecting } or identifier",
		`3 = 8`:                                                "1:12-13: ERROR: syntax error, unexpected integer, expecting } or identifier",
	} {
		_, err := Analyze("stdin", "config = { "+settings+" } BEGIN { exit(); }", &Options{}, nil)
		var p *Problems
		if want == "" {
			require.NoError(t, err, settings)
			continue
		}
		require.ErrorAs(t, err, &p, settings)
		require.Contains(t, p.Text(), want, settings)
	}
	_, err := Analyze("stdin", `config = { max_strlen = 8; max_strlen = 20 } BEGIN { @ = "0123456789"; }`, &Options{}, nil)
	require.ErrorContains(t, err, "over 8 bytes", "the first value counts")
}

// A value that does not fit is said without its sign, and the variable counts as assigned.
func TestValuesThatDoNotFit(t *testing.T) {
	for text, want := range map[string]string{
		"BEGIN { let $x : uint8 = 300; print($x); }":     "stdin:1:9-30: ERROR: Type mismatch for $x: trying to assign value '300' which does not fit into the variable of type 'uint8'\n",
		"BEGIN { let $x : int8; $x = -129; print($x); }": "stdin:1:25-34: ERROR: Type mismatch for $x: trying to assign value '18446744073709551487' which does not fit into the variable of type 'int8'\n",
		"BEGIN { $x = (int16)1; $x = -40000; }":          "stdin:1:24-35: ERROR: Type mismatch for $x: trying to assign value '18446744073709511616' which does not fit into the variable of type 'int16'\n",
	} {
		_, err := Analyze("stdin", text, &Options{}, nil)
		var p *Problems
		require.ErrorAs(t, err, &p, text)
		require.Equal(t, want, p.Text()[:len(want)], text)
	}
}
