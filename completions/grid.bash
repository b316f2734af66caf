# bash completion of grid. What may follow is asked of grid itself, which reads the declaration.
_grid() {
    local word
    COMPREPLY=()
    # The line, since readline breaks words at = and : where grid does not; and what readline replaces.
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(GRID_COMPLETE=bash command grid -- "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
if [[ ${BASH_VERSINFO[0]} -gt 4 || ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 ]]; then
    complete -o nosort -F _grid grid
else
    complete -F _grid grid
fi
