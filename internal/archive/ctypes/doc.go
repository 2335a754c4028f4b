// Package ctypes keeps the parts of a kernel's BTF that check needs, in few bytes:
// functions with their numbers, the names and types of their parameters and their results;
// structures and unions with their members; the sizes of numbers. Qualifiers, typedefs,
// the values of enumerations and the parameters of function pointers are left out.
//
// It must not know how a file keeps bytes, nor what a probe is.
//
// A Table is made of BTF (FromBTF) or of columns (Read), and gives columns (Columns) or
// BTF (BTF). A column has one property of all types, of all members or of all
// functions, so that similar bytes are neighbours and a compressor finds them:
//
//	often    names that are used twice or more, those most used first, a zero after each
//	once     the other names in the order of their use, a zero after each
//	kinds    a byte for each type: what it is, those most used first
//	sizes    of numbers; of structures, less what their members make likely
//	elems    types of arrays' elements, and how many there are
//	counts   how many members a structure has, or parameters a function
//	members  the names of structures and members: 0 for one in once, else its place in often
//	params   the names of parameters, alike
//	types    of members, parameters and results, in a column each: 0 for that of the last
//	         member or parameter of the name
//	offsets  of members, less what the member before makes likely
//	bits     the widths of bitfields, 0 for other members
//	known    a byte for each name that the reader has: whether a function is called so
//	funcs    functions' numbers in BTF, as distances
//	first    the types with the smallest numbers in BTF
//
// A type is written as the number of pointers, up to three, plus four times the number
// of the type that they point to.
package ctypes
