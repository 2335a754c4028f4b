#compdef kprobelab
# zsh completion of kprobelab: source <(kprobelab completion zsh)
_kprobelab() {
	local -a values shown more
	local line value files
	for line in "${(@f)$("${words[1]}" __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		case $line in
		'') ;;
		:files) files=1 ;;
		*)
			value=${line%%$'\t'*}
			values+=("$value")
			shown+=("$value${${line#*$'\t'}:+  -- ${line#*$'\t'}}")
			# Behind an open parenthesis the call goes on.
			[[ $value == *'(' ]] && more=(-S '')
			;;
		esac
	done
	# -U and -Q: the program has matched and quoted already.
	(( $#values )) && compadd -U -Q -l "${more[@]}" -d shown -a values
	[[ -n $files ]] && _files
	return 0
}
compdef _kprobelab kprobelab
