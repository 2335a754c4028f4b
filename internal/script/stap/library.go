package stap

// library is the part of the library that is written in the language itself.
const library = `
private global __indent_depth, __indent_start, __target_set
global __this_var1%, __this_var2%, __this_var3%, __this_var4%, __this_var5%, __this_var6%, __this_var7%, __this_var8%
global VM_FAULT_OOM = 0, VM_FAULT_SIGBUS = 1, VM_FAULT_MINOR = 2, VM_FAULT_MAJOR = 3
global VM_FAULT_NOPAGE = 4, VM_FAULT_LOCKED = 5, VM_FAULT_ERROR = 6, FAULT_FLAG_WRITE = 1

function __depth:long(key:long, delta:long) {
  before = __indent_depth[key]
  __indent_depth[key] = before + delta
  if (delta > 0) before += delta
  return before > 0 ? before - 1 : 0
}
function __indented:string(key:long, who:string, delta:long) {
  now = gettimeofday_us()
  if (!__indent_depth[key]) __indent_start[key] = now
  return sprintf("%6d %s:%-*s", now - __indent_start[key], who, __depth(key, delta), "")
}
function thread_indent:string(delta:long) { return __indented(tid(), sprintf("%s(%d)", execname(), tid()), delta) }
function thread_indent_depth:long(delta:long) { return __depth(tid(), delta) }
function indent:string(delta:long) { return __indented(-1, "", delta) }
function indent_depth:long(delta:long) { return __depth(-1, delta) }

function task_pid:long(task:long) { return @cast(task, "task_struct")->tgid }
function task_tid:long(task:long) { return @cast(task, "task_struct")->pid }
function task_ppid:long(task:long) { return @cast(task, "task_struct")->real_parent->tgid }
function task_parent:long(task:long) { return @cast(task, "task_struct")->real_parent }
function task_execname:string(task:long) { return kernel_string_n(&@cast(task, "task_struct")->comm, 16) }
function task_prio:long(task:long) { return @cast(task, "task_struct")->prio - 100 }
function task_nice:long(task:long) { return @cast(task, "task_struct")->static_prio - 120 }
function task_state:long(task:long) {
  return @choose_defined(@cast(task, "task_struct")->__state, @cast(task, "task_struct")->state)
}
function task_cpu:long(task:long) {
  return @choose_defined(@cast(task, "task_struct")->thread_info->cpu, @cast(task, "task_struct")->cpu)
}
function task_uid:long(task:long) { return @cast(task, "task_struct")->cred->uid->val }
function task_euid:long(task:long) { return @cast(task, "task_struct")->cred->euid->val }
function task_gid:long(task:long) { return @cast(task, "task_struct")->cred->gid->val }
function task_egid:long(task:long) { return @cast(task, "task_struct")->cred->egid->val }
function pexecname:string() { return task_execname(task_parent(task_current())) }
function pgrp:long() { return @cast(task_current(), "task_struct")->signal->pids[2]->numbers[0]->nr }
function sid:long() { return @cast(task_current(), "task_struct")->signal->pids[3]->numbers[0]->nr }
function task_utime:long() { return @cast(task_current(), "task_struct")->utime }
function task_stime:long() { return @cast(task_current(), "task_struct")->stime }

function d_name:string(dentry:long) { return kernel_string(@cast(dentry, "dentry")->d_name->name) }
function __inode_dentry:long(inode:long) {
  first = @cast(inode, "inode")->i_dentry->first
  if (first == 0) return 0
  # The union d_u has a name until 7.0.
  return first - @choose_defined(&@cast(0, "dentry")->d_u, &@cast(0, "dentry")->d_alias)
}
function inode_name:string(inode:long) {
  dentry = __inode_dentry(inode)
  return dentry ? d_name(dentry) : "N/A"
}
function file_ino:long(file:long) { return @cast(file, "file")->f_path->dentry->d_inode->i_ino }
function reverse_path_walk:string(dentry:long) {
  s = d_name(dentry)
  for (i = 0; i < 32; i++) {
    up = @cast(dentry, "dentry")->d_parent
    if (up == dentry) break
    dentry = up
    n = d_name(dentry)
    s = (n == "/" ? "" : n) . "/" . s
  }
  return s
}

function __path:string(dentry:long, mnt:long) {
  s = ""
  for (i = 0; i < 64; i++) {
    up = @cast(dentry, "dentry")->d_parent
    if (up != dentry && dentry != @cast(mnt, "vfsmount")->mnt_root) {
      s = "/" . d_name(dentry) . s
      dentry = up
      continue
    }
    m = @container_of(mnt, "mount", mnt)
    up = m->mnt_parent
    if (up == m) break
    dentry = m->mnt_mountpoint
    mnt = &@cast(up, "mount")->mnt
  }
  return s == "" ? "/" : s
}
function fullpath_struct_path:string(path:long) {
  dentry = @cast(path, "path")->dentry
  mode = @cast(dentry, "dentry")->d_inode ? @cast(dentry, "dentry")->d_inode->i_mode & 0170000 : 0
  # What is mounted nowhere has the name that /proc shows.
  if (@cast(path, "path")->mnt->mnt_flags & 0x4000) {
    if (mode == 0140000) return sprintf("socket:[%d]", @cast(dentry, "dentry")->d_inode->i_ino)
    if (mode == 0010000) return sprintf("pipe:[%d]", @cast(dentry, "dentry")->d_inode->i_ino)
  }
  return __path(dentry, @cast(path, "path")->mnt)
}
function fullpath_struct_file:string(task:long, file:long) { return fullpath_struct_path(&@cast(file, "file")->f_path) }
function __vector_size:long(vec:long, n:long) {
  size = 0
  for (i = 0; i < n && i < 64; i++) size += user_long(vec + 16 * i + 8)
  return size
}
function bdevname:string(bdev:long) {
  if (bdev == 0) return "N/A"
  disk = kernel_string(@cast(bdev, "block_device")->bd_disk->disk_name)
  part = @choose_defined(@cast(bdev, "block_device")->bd_partno, kernel_char(&@cast(bdev, "block_device")->__bd_flags) & 0xff)
  if (part == 0) return disk
  return sprintf("%s%s%d", disk, isdigit(substr(disk, strlen(disk) - 1, 1)) ? "p" : "", part)
}
function __bio_bdev:long(bio:long) { return @choose_defined(@cast(bio, "bio")->bi_bdev, 0) }
function __bio_ino:long(bio:long) {
  if (@cast(bio, "bio")->bi_vcnt == 0) return -1
  mapping = @cast(bio, "bio")->bi_io_vec->bv_page->mapping
  return mapping & 3 || mapping == 0 ? -1 : @cast(mapping, "address_space")->host->i_ino
}
function __bio_start:long(bio:long) { return @choose_defined(@cast(bio, "bio")->bi_bdev->bd_start_sect, 0) }
function bio_rw_num:long(rw:long) { return rw & 1 }
function bio_rw_str:string(rw:long) { return rw & 1 ? "W" : "R" }

function atomic_read:long(addr:long) { return kernel_int(addr) }
function atomic_long_read:long(addr:long) { return kernel_long(addr) }
function mem_page_size:long() { return 4096 }
function vm_fault_contains:long(value:long, test:long) {
  if (test == 0) return (value & 1) != 0
  if (test == 1) return (value & 2) != 0
  if (test == 2) return (value & 7) == 0
  if (test == 3) return (value & 4) != 0
  if (test == 4) return (value & 0x100) != 0
  if (test == 5) return (value & 0x200) != 0
  return (value & 0x873) != 0
}
function irqflags_str:string(flags:long) { return __irq_flags(flags) }

function __si_code:string(info:long) {
  if (info == 2) return "SIGSTOP or SIGKILL"
  return info > 0 ? "SI_KERNEL (SIGFPE, SIGSEGV, SIGTRAP, SIGCHLD, SIGPOLL)" : "SI_USER or SI_TIMER or SI_ASYNCIO"
}
function __wake_mask:string(state:long) {
  return "TASK_INTERRUPTIBLE" . (state & 4 ? " | TASK_STOPPED" : "") . (state & 8 ? " | TASK_TRACED" : "") . (state & 0x100 ? " | TASK_WAKEKILL" : "")
}
function get_sa_flags:long(act:long) { return @cast(act, "k_sigaction")->sa->sa_flags }
function get_sa_handler:long(act:long) { return @cast(act, "k_sigaction")->sa->sa_handler }
function sa_handler_str:string(handler:long) {
  if (handler == 0) return "default"
  if (handler == 1) return "ignored"
  return handler == -1 ? "error" : sprintf("%p", handler)
}
function __strings_of:string(list:long, from:long) {
  s = "["
  for (i = from; list && i < 64; i++) {
    try { at = user_long(list + 8 * i) } catch { s .= sprintf("%s0x%x", i > from ? ", " : "", list + 8 * i); break }
    if (at == 0) break
    s .= (i > from ? ", " : "") . user_string_quoted(at)
  }
  return s . "]"
}

function target_set_pid:long(pid:long) { return pid == target() || [pid] in __target_set }
function target_set_report() {
  println("target set:")
  foreach (pid+ in __target_set) printf("%d begat %d\n", __target_set[pid], pid)
}

function MAJOR:long(dev:long) { return dev >> 20 }
function MINOR:long(dev:long) { return dev & 0xfffff }
function MKDEV:long(major:long, minor:long) { return (major << 20) | minor }
function usrdev2kerndev:long(dev:long) {
  return MKDEV((dev & 0xfff00) >> 8, (dev & 0xff) | ((dev >> 12) & 0xfff00))
}

function usecs_to_string:string(t:long) { return sprintf("%dm%d.%06ds", t / 60000000, t / 1000000 % 60, t % 1000000) }
function nsecs_to_string:string(t:long) { return sprintf("%dm%d.%09ds", t / 60000000000, t / 1000000000 % 60, t % 1000000000) }
function msecs_to_string:string(t:long) { return sprintf("%dm%d.%03ds", t / 60000, t / 1000 % 60, t % 1000) }
function __in_units:string(n:long, rest:long, unit:string) {
  if (n >= 100) return sprintf("%4d%s", n, unit)
  if (n >= 10) return sprintf("%2d.%1d%s", n, rest * 10 / 1024, unit)
  return sprintf("%1d.%02d%s", n, rest * 100 / 1024, unit)
}
function bytes_to_string:string(n:long) {
  if (n < 1024) return sprintf("%5d", n)
  if (n < 1048576) return __in_units(n / 1024, n % 1024, "K")
  n /= 1024
  if (n < 1048576) return __in_units(n / 1024, n % 1024, "M")
  n /= 1024
  return __in_units(n / 1024, n % 1024, "G")
}
function pages_to_string:string(n:long) { return bytes_to_string(n * 4096) }
function assert(x:long) { if (!x) error("assertion failed") }
function assert(x:long, msg:string) { if (!x) error(msg) }

function ip_ntop:string(addr:long) {
  return sprintf("%d.%d.%d.%d", addr & 0xff, (addr >> 8) & 0xff, (addr >> 16) & 0xff, (addr >> 24) & 0xff)
}
function format_ipaddr:string(addr:long, family:long) {
  if (family == 2) return ip_ntop(addr)
  if (family != 10) return ""
  s = ""
  for (i = 0; i < 16; i += 2) s .= sprintf("%s%02x%02x", i ? ":" : "", kernel_char(addr + i) & 0xff, kernel_char(addr + i + 1) & 0xff)
  return s
}
function __sock_end:string(sk:long, remote:long) {
  family = @cast(sk, "sock")->__sk_common->skc_family
  if (family == 10)
    return format_ipaddr(remote ? &@cast(sk, "sock")->__sk_common->skc_v6_daddr : &@cast(sk, "sock")->__sk_common->skc_v6_rcv_saddr, family)
  return format_ipaddr(remote ? @cast(sk, "sock")->__sk_common->skc_daddr : @cast(sk, "sock")->__sk_common->skc_rcv_saddr, family)
}
function inet_get_local_port:long(sock:long) { return @cast(sock, "sock")->__sk_common->skc_num }
function inet_get_ip_source:string(sock:long) { return __sock_end(sock, 1) }
function get_netdev_name:string(dev:long) { return kernel_string(@cast(dev, "net_device")->name) }

function ansi_clear_screen() { print("\033[1;1H\033[J") }
function ansi_cursor_move(x:long, y:long) { printf("\033[%d;%dH", y, x) }
function ansi_cursor_hide() { print("\033[>5I") }
function ansi_cursor_show() { print("\033[>5h") }
function ansi_new_line() { println() }
function ansi_reset_color() { print("\033[0;0m") }
function ansi_set_color(fg:long) { printf("\033[%dm", fg) }
function ansi_set_color2(fg:long, bg:long) { printf("\033[%d;%dm", bg, fg) }
function ansi_set_color3(fg:long, bg:long, attr:long) { printf("\033[%d;%d;%dm", bg, fg, attr) }
function ansi_cursor_save() { print("\033[s") }
function ansi_cursor_restore() { print("\033[u") }

probe oneshot = begin { } , { exit() }
probe init = begin { }

probe kernel.trace("sched_process_fork") ? {
  if ($child->tgid != $parent->tgid && (pid() == target() || [pid()] in __target_set)) __target_set[$child->tgid] = pid()
}
probe kernel.trace("sched_process_exit") ? {
  if ($p->tgid == $p->pid) delete __target_set[$p->tgid]
}
`

// libraryParsed reads it.
func libraryParsed() *parsed { return libraryText(library + taskLibrary + toolLibrary) }
