package stap

// taskLibrary is the part of the library about tasks, their memory, files and limits.
const taskLibrary = `
function pid2task:long(pid:long) {
  group = &@cast(0, "task_struct")->signal
  return __thread(task_current(), pid, &@cast(0, "task_struct")->tasks, group, &@cast(0, "signal_struct")->thread_head,
    &@cast(0, "task_struct")->thread_node, &@cast(0, "task_struct")->pid)
}
function pid2execname:string(pid:long) {
  task = pid2task(pid)
  return task ? task_execname(task) : ""
}
function task_utime_tid:long(tid:long) { task = pid2task(tid) return task ? @cast(task, "task_struct")->utime : 0 }
function task_stime_tid:long(tid:long) { task = pid2task(tid) return task ? @cast(task, "task_struct")->stime : 0 }
function task_utime:long(tid:long) { return task_utime_tid(tid) }
function task_stime:long(tid:long) { return task_stime_tid(tid) }
function task_start_time:long(tid:long) {
  task = pid2task(tid)
  return task ? @choose_defined(@cast(task, "task_struct")->start_boottime, @cast(task, "task_struct")->real_start_time) : 0
}
function cputime_to_usecs:long(cputime:long) { return cputime / 1000 }
function cputime_to_msecs:long(cputime:long) { return cputime / 1000000 }
function cputime_to_string:string(cputime:long) { return msecs_to_string(cputime_to_msecs(cputime)) }
function task_time_string:string() {
  return "usr: " . cputime_to_string(task_utime()) . ", sys: " . cputime_to_string(task_stime())
}
function task_time_string_tid:string(tid:long) {
  return "usr: " . cputime_to_string(task_utime_tid(tid)) . ", sys: " . cputime_to_string(task_stime_tid(tid))
}
function pstrace:string(task:long) {
  chain = ""
  for (i = 0; i < 64 && task_pid(task) > 1; i++) {
    chain .= sprintf(" %s(%d)", task_execname(task), task_pid(task))
    task = task_parent(task)
  }
  return chain
}
function task_ancestry:string(task:long, with_time:long) {
  chain = ""
  for (i = 0; i < 64; i++) {
    born = with_time ? sprintf("(%s)", nsecs_to_string(task_start_time(task_pid(task)))) : ""
    chain = task_execname(task) . born . (i ? "=>" : "") . chain
    up = task_parent(task)
    if (up == task) break
    task = up
  }
  return chain
}

function __ns_number:long(task:long, kind:long) {
  pid = kind ? @cast(task, "task_struct")->signal->pids[kind] : @cast(task, "task_struct")->thread_pid
  if (pid == 0) return 0
  own = @cast(task, "task_struct")->thread_pid
  level = own ? @cast(own, "pid")->level : 0
  return @cast(pid, "pid")->numbers[level]->nr
}
function task_ns_pid:long(task:long) { return __ns_number(task, 1) }
function task_ns_tid:long(task:long) { return __ns_number(task, 0) }
function ns_pid:long() { return task_ns_pid(task_current()) }
function ns_tid:long() { return task_ns_tid(task_current()) }
function ns_ppid:long() { return task_ns_pid(task_parent(task_current())) }
function ns_pgrp:long() { return __ns_number(task_current(), 2) }
function ns_sid:long() { return __ns_number(task_current(), 3) }

function task_exe_file:long(task:long) {
  mm = @cast(task, "task_struct")->mm
  return mm ? @cast(mm, "mm_struct")->exe_file : 0
}
function current_exe_file:long() { return task_exe_file(task_current()) }
function task_cwd_path:long(task:long) {
  fs = @cast(task, "task_struct")->fs
  return fs ? &@cast(fs, "fs_struct")->pwd : 0
}
function task_max_file_handles:long(task:long) {
  files = @cast(task, "task_struct")->files
  return files ? @cast(files, "files_struct")->fdt->max_fds : 0
}
function task_open_file_handles:long(task:long) {
  files = @cast(task, "task_struct")->files
  return files ? __count_pointers(@cast(files, "files_struct")->fdt->fd, @cast(files, "files_struct")->fdt->max_fds) : 0
}
function task_fd_lookup:long(task:long, fd:long) {
  files = @cast(task, "task_struct")->files
  file = 0
  if (files && fd >= 0 && fd < @cast(files, "files_struct")->fdt->max_fds)
    file = kernel_pointer(@cast(files, "files_struct")->fdt->fd + 8 * fd)
  if (file == 0) error("cannot find file in task")
  return file
}
function task_dentry_path:string(task:long, dentry:long, vfsmnt:long) { return __path(dentry, vfsmnt) }
function real_mount:long(vfsmnt:long) { return vfsmnt - &@cast(0, "mount")->mnt }
function __inode_mount:long(inode:long) {
  sb = @cast(inode, "inode")->i_sb
  first = @choose_defined(@cast(sb, "super_block")->s_mounts->next, 0)
  if (first == 0) return @defined(@cast(sb, "super_block")->s_mounts->mnt_next_for_sb) ? @cast(sb, "super_block")->s_mounts : 0
  if (first == &@cast(sb, "super_block")->s_mounts) return 0
  return first - @choose_defined(&@cast(0, "mount")->mnt_instance, 0)
}
function inode_path:string(inode:long) {
  dentry = __inode_dentry(inode)
  if (dentry == 0) return ""
  mount = __inode_mount(inode)
  return mount ? __path(dentry, &@cast(mount, "mount")->mnt) : reverse_path_walk(dentry)
}

function cmdline_args:string(n:long, m:long, delim:string) {
  mm = @cast(task_current(), "task_struct")->mm
  if (mm == 0) return ""
  at = @cast(mm, "mm_struct")->arg_start
  end = @cast(mm, "mm_struct")->arg_end
  line = ""
  for (i = 0; at && at < end && (m < 0 || i <= m); i++) {
    word = user_string(at, "")
    at += strlen(word) + 1
    if (i >= n) line .= i == n ? word : delim . (word == "" ? "\"\"" : word)
  }
  return line
}
function cmdline_arg:string(n:long) { return cmdline_args(n, n, "") }
function cmdline_str:string() { return cmdline_args(0, -1, " ") }
function env_var:string(name:string) {
  mm = @cast(task_current(), "task_struct")->mm
  if (mm == 0 || name == "") return ""
  at = @cast(mm, "mm_struct")->env_start
  end = @cast(mm, "mm_struct")->env_end
  head = name . "="
  while (at && at < end) {
    one = user_string(at, "")
    if (substr(one, 0, strlen(head)) == head) return substr(one, strlen(head), strlen(one))
    at += strlen(one) + 1
  }
  return ""
}

function __rss:long(mm:long, kind:long) {
  n = @choose_defined(@cast(mm, "mm_struct")->rss_stat->count[kind]->counter, @cast(mm, "mm_struct")->rss_stat[kind]->count)
  return n < 0 ? 0 : n
}
function __mm_of:long(task:long) {
  # Kernel threads and tasks that end have no memory of their own.
  if (task == 0 || @cast(task, "task_struct")->flags & 0x200004) return 0
  return @cast(task, "task_struct")->mm
}
function __mem_size:long(mm:long) { return mm ? @cast(mm, "mm_struct")->total_vm : 0 }
function __mem_rss:long(mm:long) { return mm ? __rss(mm, 0) + __rss(mm, 1) + __rss(mm, 3) : 0 }
function __mem_shr:long(mm:long) { return mm ? __rss(mm, 0) : 0 }
function __mem_txt:long(mm:long) {
  return mm ? (((@cast(mm, "mm_struct")->end_code + 4095) & ~4095) - (@cast(mm, "mm_struct")->start_code & ~4095)) >> 12 : 0
}
function __mem_data:long(mm:long) {
  return mm ? @cast(mm, "mm_struct")->data_vm + @cast(mm, "mm_struct")->stack_vm : 0
}
function __mem_string:string(mm:long) {
  return sprintf("size: %s, rss: %s, shr: %s, txt: %s, data: %s", pages_to_string(__mem_size(mm)), pages_to_string(__mem_rss(mm)),
    pages_to_string(__mem_shr(mm)), pages_to_string(__mem_txt(mm)), pages_to_string(__mem_data(mm)))
}
function proc_mem_size:long() { return __mem_size(__mm_of(task_current())) }
function proc_mem_size:long(pid:long) { return __mem_size(__mm_of(pid2task(pid))) }
function proc_mem_size_pid:long(pid:long) { return proc_mem_size(pid) }
function proc_mem_rss:long() { return __mem_rss(__mm_of(task_current())) }
function proc_mem_rss:long(pid:long) { return __mem_rss(__mm_of(pid2task(pid))) }
function proc_mem_rss_pid:long(pid:long) { return proc_mem_rss(pid) }
function proc_mem_shr:long() { return __mem_shr(__mm_of(task_current())) }
function proc_mem_shr:long(pid:long) { return __mem_shr(__mm_of(pid2task(pid))) }
function proc_mem_shr_pid:long(pid:long) { return proc_mem_shr(pid) }
function proc_mem_txt:long() { return __mem_txt(__mm_of(task_current())) }
function proc_mem_txt:long(pid:long) { return __mem_txt(__mm_of(pid2task(pid))) }
function proc_mem_txt_pid:long(pid:long) { return proc_mem_txt(pid) }
function proc_mem_data:long() { return __mem_data(__mm_of(task_current())) }
function proc_mem_data:long(pid:long) { return __mem_data(__mm_of(pid2task(pid))) }
function proc_mem_data_pid:long(pid:long) { return proc_mem_data(pid) }
function proc_mem_string:string() { return __mem_string(__mm_of(task_current())) }
function proc_mem_string:string(pid:long) { return __mem_string(__mm_of(pid2task(pid))) }
function proc_mem_string_pid:string(pid:long) { return proc_mem_string(pid) }

function task_rlimit:long(task:long, lim_str:string) { return __rlimit(task, rlimit_from_str(lim_str)) }
function __rlimit:long(task:long, n:long) {
  return n < 0 ? -1 : @cast(task, "task_struct")->signal->rlim[n]->rlim_cur
}
function task_rlimit_cpu:long(task:long) { return __rlimit(task, 0) }
function task_rlimit_fsize:long(task:long) { return __rlimit(task, 1) }
function task_rlimit_data:long(task:long) { return __rlimit(task, 2) }
function task_rlimit_stack:long(task:long) { return __rlimit(task, 3) }
function task_rlimit_core:long(task:long) { return __rlimit(task, 4) }
function task_rlimit_rss:long(task:long) { return __rlimit(task, 5) }
function task_rlimit_nproc:long(task:long) { return __rlimit(task, 6) }
function task_rlimit_nofile:long(task:long) { return __rlimit(task, 7) }
function task_rlimit_memlock:long(task:long) { return __rlimit(task, 8) }
function task_rlimit_as:long(task:long) { return __rlimit(task, 9) }
function task_rlimit_locks:long(task:long) { return __rlimit(task, 10) }
function task_rlimit_sigpending:long(task:long) { return __rlimit(task, 11) }
function task_rlimit_msgqueue:long(task:long) { return __rlimit(task, 12) }
function task_rlimit_nice:long(task:long) { return __rlimit(task, 13) }
function task_rlimit_rtprio:long(task:long) { return __rlimit(task, 14) }
function task_rlimit_rttime:long(task:long) { return __rlimit(task, 15) }

function is_sig_blocked:long(task:long, sig:long) {
  return (@cast(task, "task_struct")->blocked->sig[0] >> (sig - 1)) & 1
}
function get_sigaction_mask:long(act:long) { return &@cast(act, "k_sigaction")->sa->sa_mask }
function get_sigset:long(sigset:long) { return kernel_long(sigset) }
function signal_str:string(num:long) { return _signal_name(num) }
function WIFEXITED:long(status:long) { return (status & 0x7f) == 0 }
function WEXITSTATUS:long(status:long) { return (status >> 8) & 0xff }
function WTERMSIG:long(status:long) { return status & 0x7f }
`
