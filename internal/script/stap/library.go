package stap

// library is the part of the library that is written in the language itself.
const library = `
global __indent_depth, __indent_start, __indents

function thread_indent_depth:long(delta:long) {
  __indent_depth[tid()] += delta
  return __indent_depth[tid()]
}
function thread_indent:string(delta:long) {
  t = tid()
  x = __indent_depth[t]
  if (delta >= 0) { n = x; __indent_depth[t] = x + delta } else { n = x + delta; __indent_depth[t] = n }
  if (n < 0) { n = 0; __indent_depth[t] = 0 }
  now = gettimeofday_us()
  if (x <= 0) __indent_start[t] = now
  s = ""
  for (i = 0; i < n && i < 100; i++) s .= " "
  return sprintf("%6d %s(%d):%s", now - __indent_start[t], execname(), t, s)
}
function indent_depth:long(delta:long) { __indents[0] += delta; return __indents[0] }
function indent:string(delta:long) {
  x = __indents[0]
  if (delta >= 0) { n = x; __indents[0] = x + delta } else { n = x + delta; __indents[0] = n }
  if (n < 0) { n = 0; __indents[0] = 0 }
  now = gettimeofday_us()
  if (x <= 0) __indents[1] = now
  s = ""
  for (i = 0; i < n && i < 100; i++) s .= " "
  return sprintf("%6d:%s", now - __indents[1], s)
}

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
function inode_name:string(inode:long) {
  first = @cast(inode, "inode")->i_dentry->first
  if (first == 0) return "N/A"
  return d_name(first - &@cast(0, "dentry")->d_u)
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

function MAJOR:long(dev:long) { return dev >> 20 }
function MINOR:long(dev:long) { return dev & 0xfffff }
function MKDEV:long(major:long, minor:long) { return (major << 20) | minor }
function usrdev2kerndev:long(dev:long) {
  return MKDEV((dev & 0xfff00) >> 8, (dev & 0xff) | ((dev >> 12) & 0xfff00))
}

function usecs_to_string:string(t:long) { return sprintf("%d.%06d", t / 1000000, t % 1000000) }
function nsecs_to_string:string(t:long) { return sprintf("%d.%09d", t / 1000000000, t % 1000000000) }
function msecs_to_string:string(t:long) { return sprintf("%d.%03d", t / 1000, t % 1000) }
function bytes_to_string:string(n:long) {
  if (n > 1073741824) return sprintf("%d.%02dG", n / 1073741824, n % 1073741824 * 100 / 1073741824)
  if (n > 1048576) return sprintf("%d.%02dM", n / 1048576, n % 1048576 * 100 / 1048576)
  if (n > 1024) return sprintf("%d.%02dK", n / 1024, n % 1024 * 100 / 1024)
  return sprintf("%d", n)
}
function pages_to_string:string(n:long) { return bytes_to_string(n * 4096) }
function assert(x:long) { if (!x) error("assertion failed") }
function assert(x:long, msg:string) { if (!x) error(msg) }

function ip_ntop:string(addr:long) {
  return sprintf("%d.%d.%d.%d", addr & 0xff, (addr >> 8) & 0xff, (addr >> 16) & 0xff, (addr >> 24) & 0xff)
}
function format_ipaddr:string(addr:long, family:long) {
  if (family == 2) return ip_ntop(addr)
  error("format_ipaddr: only AF_INET is there")
}

function ansi_clear_screen() { print("\033[1;1H\033[J") }
function ansi_cursor_move(x:long, y:long) { printf("\033[%d;%dH", y, x) }
function ansi_cursor_hide() { print("\033[?25l") }
function ansi_cursor_show() { print("\033[?25h") }
function ansi_new_line() { println() }
function ansi_reset_color() { print("\033[0;m") }
function ansi_set_color(fg:long) { printf("\033[%dm", fg) }
function ansi_set_color2(fg:long, bg:long) { printf("\033[%d;%dm", bg, fg) }
function ansi_set_color3(fg:long, bg:long, attr:long) { printf("\033[%d;%d;%dm", attr, bg, fg) }
function ansi_cursor_save() { print("\033[s") }
function ansi_cursor_restore() { print("\033[u") }

probe oneshot = begin { } , { exit() }
probe init = begin { }
`

// libraryParsed reads it.
func libraryParsed() *parsed {
	f := newFile("library", library)
	f.library = true
	out, p := parse(f, &Options{Guru: true}, shared)
	if p.problems != nil {
		panic("BUG: " + p.problems.Text())
	}
	return out
}
