
# The ids of the runs in the store of this folder, where a command takes a run.
_loopctl_with_runs() {
    local cur="${COMP_WORDS[COMP_CWORD]}" id
    case "${COMP_CWORD}:${COMP_WORDS[1]}" in
        2:resume|2:retry|2:rerun|2:replay|2:record|2:explain|2:fork|2:diff|3:diff|2:cancel|2:trace|2:export)
            if [[ "${cur}" != -* ]]; then
                COMPREPLY=()
                # An id is compared and never expanded.
                while IFS= read -r id; do
                    [[ "${id}" == "${cur}"* ]] && COMPREPLY+=("${id}")
                done < <(echo last; "$1" runs --ids --limit 100 2>/dev/null)
                return 0
            fi
            ;;
    esac
    _loopctl "$@"
}
complete -F _loopctl_with_runs -o bashdefault -o default loopctl
