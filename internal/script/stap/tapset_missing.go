package stap

import "strings"

// missing are functions of SystemTap's library that are not here, and why.
var missing = missingFunctions([][2]string{
	{"a script cannot run commands here", "system"},
	{"there is no program of SystemTap that writes files", "switch_file"},
	{"stacks of programs are not there", "print_ubacktrace print_ubacktrace_brief print_ubacktrace_fileline sprint_ubacktrace ubacktrace ucallers ustack print_ustack sprint_ustack"},
	{"symbols of programs are not there", "usymdata usymfile usymline usymfileline umodname umodaddr umodbuildid print_usyms sprint_usyms"},
	{"lines of the source are not there", "symfile symline symfileline print_backtrace_fileline"},
	{"a script cannot harm the kernel", "panic"},
	{"a script cannot wait", "mdelay udelay"},
	{"a script cannot send signals", "raise send_signal"},
	{"there is no ftrace buffer to write to", "ftrace"},
	{"there is no probe of procfs that reads it", "json_set_prefix json_add_numeric_metric json_add_string_metric json_add_array json_add_array_numeric_metric json_add_array_string_metric cve_record_metric cve_count_metric cve_tmpdisable remote_id remote_uri"},
	{"programs of Java are not there", "print_java_backtrace sprint_java_backtrace"},
	{"arguments of a function are written by $variables (-g)", "set_int_arg set_uint_arg set_long_arg set_ulong_arg set_longlong_arg set_ulonglong_arg set_pointer_arg set_s32_arg set_u32_arg set_s64_arg set_u64_arg set_returnval set_user_string_arg"},
	{"the kernel's averages have no type in BTF", "get_loadavg_index sprint_loadavg"},
	{"nodes of memory are not looked up", "addr_to_node"},
	{"structures of RPC are not read", "port_from_clnt port_from_xprt prog_from_clnt prot_from_clnt vers_from_clnt vers_from_prog xid_from_clnt clones_from_clnt tasks_from_clnt get_ip get_ip_from_client get_prot get_prot_from_client proc_from_msg addr_from_rqst addr_from_rqst_str"},
	{"structures of NFS are not read", "NFS_I NFS_PROTO NFS_SERVER stap_NFS_CLIENT nfs3_cmode nfs4_ctype nfsderror ftype"},
	{"counters of the network's protocols are not there", "ipmib_filter_key ipmib_get_proto ipmib_local_addr ipmib_remote_addr ipmib_tcp_local_port ipmib_tcp_remote_port linuxmib_filter_key tcpmib_filter_key"},
	{"structures of block requests and SCSI are not read", "describe_data_direction describe_device_state get_devstate_from_req get_scsi_request scsi_timer_pending timer_pending disk_major_from_request disk_minor_from_request"},
})

// missingFunctions makes a reason for each function of lists of names.
func missingFunctions(rows [][2]string) map[string]string {
	out := map[string]string{}
	for _, row := range rows {
		for _, name := range strings.Fields(row[1]) {
			out[name] = row[0]
		}
	}
	return out
}
