// Package hostfiles finds the files of the host that a program needs in a guest: the program itself, the interpreter
// and the libraries that its ELF headers name, the interpreter of a script, and files and folders that are named.
//
//	s := &hostfiles.Set{}
//	path, err := s.Program("./tool")     // and what it needs to start
//	err = s.Add("testdata", "/testdata") // a folder, with the libraries of the programs in it
//	files := s.Files()
//
// Libraries are found as ld.so finds them (ld.so(8)), without running anything: a program of an unpacked tree (Set.Root)
// is read as one of the host's.
//
// It must not know what a guest is, nor how files get into it.
package hostfiles
