
# The ids of the runs in the store of this folder, where a command takes a run. They are never expanded.
_loopctl_runs() {
    local -a ids
    ids=(last ${(f)"$(loopctl runs --ids --limit 100 2>/dev/null)"})
    compadd -a ids
}
