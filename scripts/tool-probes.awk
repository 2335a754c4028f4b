# The tables of docs/measured/tools.md, from three files: a target and a tool a line; the kernels, as
# pack --list --json says them; check's answers, as --tsv says them (tool-probes.sh).
#
# A series, as 6.1, is all its kernels. A target that is in a module of some kernel is not
# known of a kernel that was packed without modules.

function series_of(file,   part, n) {
	n = split(file, part, "/")
	match(part[n], /^[0-9]+\.[0-9]+/)
	return substr(part[n], 1, RLENGTH)
}

# spans lists the series in which all kernels answer so, as far as it is known, then those
# in which some do.
function spans(target, answer,   i, n, all, from, out, some) {
	for (i = 1; i <= last + 1; i++) {
		n = count[target, i, answer]
		all = kernels[i]
		if (answer != "unknown") all -= count[target, i, "unknown"]
		else if (n < all) n = 0
		if (i <= last && n && n == all) {
			if (!from) from = i
			continue
		}
		if (from) out = out (out == "" ? "" : ", ") (from == i - 1 ? series[from] : series[from] " to " series[i - 1])
		from = 0
		if (i <= last && n) some = some (some == "" ? "some of " : ", ") series[i]
	}
	return out (out != "" && some != "" ? ", " : "") some
}

function title(target,   t) {
	t = target
	gsub(/\|/, " or ", t)
	gsub(/\*/, "\\*", t)
	sub(/%return$/, " (return)", t)
	return t
}

function add(list, item) { return list == "" ? item : list ", " item }

# joined is a list of a tool's targets, with the series where they attach on some.
function joined(kind,   k, list) {
	for (k = 1; k <= size[kind]; k++)
		list = list (k == 1 ? "" : kind == "some" ? "; " : ", ") name[kind, k] (kind == "some" ? ": " where[k] : "")
	return list
}

FILENAME == ARGV[1] {
	if (!(($2) in wants)) tools[++ntools] = $2
	wants[$2] = add(wants[$2], $1)
	next
}
FILENAME == ARGV[2] {
	match($0, /"file":"[^"]*"/)
	file = substr($0, RSTART + 8, RLENGTH - 9)
	s = series_of(file)
	if (s != series[last]) series[++last] = s
	kernels[last]++
	place[file] = last
	packaged[file] = /"packaged":/
	npackaged += /"packaged":/
	next
}
FNR == 1 { next }
{
	if (!($2 in seen)) targets[++ntargets] = $2
	seen[$2]
	i = place[$1]
	if ($5 == "package") module[$2] = 1
	if ($6) count[$2, i, "yes"]++
	else if ($5 == "absent") {
		count[$2, i, "absent"]++
		if (!packaged[$1]) bare[$2, i]++
	} else {
		count[$2, i, "no"]++
		if (why[$2] == "" || index(", " why[$2] ",", ", " $12 ",") == 0) why[$2] = add(why[$2], $12)
	}
}
END {
	for (j = 1; j <= ntargets; j++) {
		t = targets[j]
		if (!module[t]) continue
		for (i = 1; i <= last; i++) {
			count[t, i, "unknown"] = bare[t, i]
			count[t, i, "absent"] -= bare[t, i]
		}
	}
	printf "The series:"
	for (i = 1; i <= last; i++) printf "%s %s (%d)", (i > 1 ? "," : ""), series[i], kernels[i]
	printf "; %d of the kernels with the modules of their packages.\n", npackaged

	print "\n## By tool\n\n| tool | attach on every series | on some | on none |\n|---|---|---|---|"
	# insertion sort: awk has none of its own
	for (j = 2; j <= ntools; j++) {
		x = tools[j]
		for (k = j - 1; k > 0 && tools[k] > x; k--) tools[k + 1] = tools[k]
		tools[k + 1] = x
	}
	for (j = 1; j <= ntools; j++) {
		split("", size)
		n = split(wants[tools[j]], want, ", ")
		for (k = 1; k <= n; k++) {
			t = want[k]
			yes = spans(t, "yes")
			kind = yes == "" ? "none" : spans(t, "absent") spans(t, "no") == "" ? "all" : "some"
			if (k > 1 && t == want[k - 1] "%return" && kind == kindBefore && yes == yesBefore) name[kind, size[kind]] = title(want[k - 1]) " (and return)"
			else name[kind, ++size[kind]] = title(t)
			if (kind == "some") where[size[kind]] = yes
			kindBefore = kind
			yesBefore = yes
		}
		printf "| %s | %s | %s | %s |\n", tools[j], joined("all"), joined("some"), joined("none")
	}

	for (j = 1; j <= ntargets; j++) {
		t = targets[j]
		no = spans(t, "no")
		if (no != "") no = no ": " why[t]
		row[j] = spans(t, "yes") " | " spans(t, "absent") " | " no " | " spans(t, "unknown")
	}
	for (j = 1; j <= ntargets; j++) {
		t = targets[j]
		both = j < ntargets && targets[j + 1] == t "%return" && row[j + 1] == row[j]
		text = title(t) (both ? " (and return)" : "") (module[t] ? ", of a module" : "")
		if (spans(t, "absent") spans(t, "no") spans(t, "unknown") == "") everywhere = everywhere (everywhere == "" ? "" : "; ") text
		else rows = rows "| " text " | " row[j] " |\n"
		j += both
	}
	print "\n## By target\n\nOn every series attach: " everywhere ".\n"
	printf "| target | attaches | absent | refused | not known |\n|---|---|---|---|---|\n%s", rows
}
