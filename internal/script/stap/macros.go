package stap

// libraryMacros are those that every script may use, as SystemTap's library has them.
const libraryMacros = `
@define choose_defined(a, b) %( (@defined(@a) ? @a : @b) %)
@define task(a) %( @cast(@a, "task_struct", "kernel<linux/sched.h>") %)
@define ulong_cast(a) %( (@a & 0xffffffffffffffff) %)
@define uint_cast(a) %( (@a & 0xffffffff) %)
@define MAXSTRINGLEN %( 128 %)
`
