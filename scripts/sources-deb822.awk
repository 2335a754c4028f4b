# apt's deb822 format: stanzas of "Field: value" with continued lines.
# Prints URI, suite, key, options for each pair of an entry that carries main.
function option(name) {
	if (field[name] != "") options = options (options == "" ? "" : " ") name "=" field[name]
}
function flush(    u, s, nu, ns, i, j, signed) {
	if ((" " field["types"] " ") ~ / deb / && (" " field["components"] " ") ~ / main / \
		&& tolower(field["enabled"]) !~ /^(no|false|0|off|without|disable)$/) {
		options = ""
		option("trusted"); option("check-valid-until"); option("check-date")
		signed = field["signed-by"]
		# A key written into the file itself cannot stand on one line.
		if (signed == "" || signed ~ /BEGIN PGP/) signed = "-"
		gsub(/ +/, ",", signed)
		nu = split(field["uris"], u, " "); ns = split(field["suites"], s, " ")
		for (i = 1; i <= nu; i++) for (j = 1; j <= ns; j++)
			print u[i] "\t" s[j] "\t" signed "\t" (options == "" ? "-" : options)
	}
	delete field
	name = ""
}
{ sub(/\r$/, "") }
/^#/ { next }
/^[ \t]*$/ { flush(); next }
/^[ \t]/ {
	if (name == "") next
	gsub(/^[ \t]+|[ \t]+$/, "")
	field[name] = field[name] (field[name] == "" ? "" : " ") $0
	next
}
{
	colon = index($0, ":")
	if (!colon) next
	name = tolower(substr($0, 1, colon - 1))
	value = substr($0, colon + 1)
	gsub(/^[ \t]+|[ \t]+$/, "", value)
	gsub(/[ \t]+/, " ", value)
	field[name] = value
}
END { flush() }
