# bash completion of kprobelab: source <(kprobelab completion bash)
_kprobelab() {
	local cur=${COMP_WORDS[COMP_CWORD]} line files=
	COMPREPLY=()
	while IFS= read -r line; do
		if [[ $line == :files ]]; then
			files=1
		else
			COMPREPLY+=("${line%%$'\t'*}")
		fi
	done < <("${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	if [[ $files ]]; then
		compopt -o filenames 2>/dev/null
		while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
	fi
	if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *"(" ]]; then
		compopt -o nospace 2>/dev/null
	fi
}
complete -F _kprobelab kprobelab
