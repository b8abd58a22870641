
# The ids of the runs in the store of this folder, where a command takes a run.
function __fish_loopctl_runs
    set -l words (commandline -opc)
    echo last
    $words[1] runs --ids --limit 100 2>/dev/null
end
for command in resume retry rerun replay record explain fork diff cancel trace export
    complete -c loopctl -n "__fish_loopctl_using_subcommand $command" -f -a '(__fish_loopctl_runs)'
end
