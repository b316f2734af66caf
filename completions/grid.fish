# fish completion of grid. What may follow is asked of grid itself, which reads the declaration.
function __grid_complete
    set -lx GRID_COMPLETE fish
    command grid -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token --cut-at-cursor) 2>/dev/null
end
complete --command grid --no-files --keep-order --arguments '(__grid_complete)'
