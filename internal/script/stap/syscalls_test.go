package stap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a variable of a system call has the width, the sign and the name that the tapset of stap
// 4.8 gives it (make conformance-stap-aliases compares all of them).
func TestVariablesOfSystemCalls(t *testing.T) {
	for name, tc := range map[string]struct{ call, has, hasNot string }{
		"length_of_64_bits":        {"truncate", "length = __syscall_arg(2)\n", ">> 32"},
		"offset_of_64_bits":        {"fadvise64", "offset = __syscall_arg(2)\n", ""},
		"number_without_sign":      {"poll", "nfds = __syscall_arg(2) & 0xffffffff\n", ""},
		"number_with_sign":         {"readlink", "bufsiz = (__syscall_arg(3) << 32) >> 32\n", ""},
		"flags_of_64_bits":         {"mremap", "flags = __syscall_arg(4)\n", ""},
		"text_without_quotes":      {"openat", `filename_unquoted = user_string2(__syscall_arg(2), "")`, "filename_uaddr"},
		"pointer_and_text":         {"mkdir", "pathname_uaddr = __syscall_arg(1)\n", "pathname_str"},
		"name_is_a_pointer":        {"renameat", "oldname = __syscall_arg(2)\n oldname_str = user_string_quoted", ""},
		"text_in_argstr_only":      {"flock", "_flock_cmd_str(operation)", "operation_str"},
		"the_tapsets_own_name":     {"semctl", "cmdstr = _semctl_cmd(cmd)", "cmd_str"},
		"no_pointer":               {"execve", "args = __strings_of(__syscall_arg(2), 0)", "argv_uaddr"},
		"variables_of_another":     {"dup2", `flags_str="0x0"`, ""},
		"called_by_its_alias":      {"mmap", `name = "mmap2"`, ""},
		"misspelled_as_the_tapset": {"mkdirat", "pahtname_unquoted", "pathname_unquoted"},
	} {
		t.Run(name, func(t *testing.T) {
			text := SyscallText(tc.call)
			require.Contains(t, text, tc.has)
			if tc.hasNot != "" {
				require.NotContains(t, text, tc.hasNot)
			}
		})
	}
}

// Rule: every alias of a system call is text that the language's own reader takes.
func TestTextsOfSystemCalls(t *testing.T) {
	require.Empty(t, SyscallText("no_such_call"))
	for _, name := range Syscalls() {
		for _, ret := range []bool{false, true} {
			require.Len(t, libraryText(syscallText("syscall", name, "sys_"+name, ret)).aliases, 1, name)
		}
	}
}

// Rule: an alias sets what the tapset sets, and no more: what is a pointer there is one here.
func TestVariablesOfAliases(t *testing.T) {
	text := map[string]string{}
	for _, rows := range libraryAliases() {
		for _, row := range rows {
			text[row.name] = row.text
		}
	}
	for name, tc := range map[string]struct{ alias, has, hasNot string }{
		"device_name_is_a_pointer":  {"irq_handler.entry", " dev_name = $action->name\n", ""},
		"action":                    {"irq_handler.exit", " action = $action\n", ""},
		"no_parts_at_the_end":       {"ioblock.end", "bytes_done", "p_start_sect"},
		"whence_in_words":           {"generic.fop.llseek", "whence_str = _seek_whence_str($whence)", ""},
		"no_result_where_none":      {"generic.fop.llseek.return", "error_str", " ret = "},
		"arguments_of_the_call":     {"kprocess.exec", "syscall.execve", "argstr"},
		"tkill_names_its_task_pid":  {"signal.systkill", "sig_pid = pid\n", "tid"},
		"disconnect_of_the_socket":  {"udp.disconnect", `"udp_disconnect"`, "__udp_disconnect"},
		"returns_know_the_ends":     {"udp.disconnect.return", "daddr", ""},
		"allocation_without_a_node": {"vm.kmalloc_node", `"kmalloc_node"`, `"kmalloc")`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, text[tc.alias], tc.has)
			if tc.hasNot != "" {
				require.NotContains(t, strings.TrimPrefix(text[tc.alias], "probe "+tc.alias), tc.hasNot)
			}
		})
	}
}
