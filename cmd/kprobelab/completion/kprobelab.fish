# fish completion of kprobelab: kprobelab completion fish | source
function __kprobelab_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete fish $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            printf '%s\n' $line
        end
    end
end
complete -c kprobelab -f -a '(__kprobelab_complete)'
