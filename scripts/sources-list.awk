# apt's one-line format: "deb [option=value ...] URI suite component...".
# Prints URI, suite, key, options for the entries that carry main.
{
	sub(/#.*/, "")
	if ($1 != "deb") next
	signed = "-"; options = ""
	i = 2
	if ($2 ~ /^\[/) {
		for (; i <= NF; i++) {
			word = $i
			last = word ~ /\]$/
			gsub(/[][]/, "", word)
			if (word ~ /^signed-by=/) signed = substr(word, 11)
			if (word ~ /^(trusted|check-valid-until|check-date)=/) options = options (options == "" ? "" : " ") word
			if (last) { i++; break }
		}
	}
	uri = $i; suite = $(i + 1); main = 0
	for (j = i + 2; j <= NF; j++) if ($j == "main") main = 1
	if (main) print uri "\t" suite "\t" signed "\t" (options == "" ? "-" : options)
}
