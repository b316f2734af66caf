# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_grid_global_optspecs
    string join \n mesh= json v/verbose quiet color= yes h/help V/version
end

function __fish_grid_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_grid_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_grid_using_subcommand
    set -l cmd (__fish_grid_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c grid -n "__fish_grid_needs_command" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_needs_command" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_needs_command" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_needs_command" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_needs_command" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_needs_command" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c grid -n "__fish_grid_needs_command" -s V -l version -d 'Print version'
complete -c grid -n "__fish_grid_needs_command" -f -a "init" -d 'Begin a mesh: a declaration, and an identity if you have none'
complete -c grid -n "__fish_grid_needs_command" -f -a "try" -d 'Show what grid does, on this machine alone'
complete -c grid -n "__fish_grid_needs_command" -f -a "check" -d 'Read the declaration and say all that is wrong with it'
complete -c grid -n "__fish_grid_needs_command" -f -a "push" -d 'Send to machines, then flush every machine that is behind'
complete -c grid -n "__fish_grid_needs_command" -f -a "status" -d 'How each machine stands, as far as the store knows'
complete -c grid -n "__fish_grid_needs_command" -f -a "assign" -d 'Put a service on machines, in the declaration'
complete -c grid -n "__fish_grid_needs_command" -f -a "unassign" -d 'Take a service from its machines, in the declaration'
complete -c grid -n "__fish_grid_needs_command" -f -a "issue" -d 'Give consumers an account on a provider'
complete -c grid -n "__fish_grid_needs_command" -f -a "revoke" -d 'Close accounts'
complete -c grid -n "__fish_grid_needs_command" -f -a "rotate" -d 'Renew the secrets of accounts'
complete -c grid -n "__fish_grid_needs_command" -f -a "hold" -d 'Keep a machine from being sent to, and say why'
complete -c grid -n "__fish_grid_needs_command" -f -a "unhold" -d 'End a machine\'s hold'
complete -c grid -n "__fish_grid_needs_command" -f -a "trust" -d 'Accept exactly one host key of a machine'
complete -c grid -n "__fish_grid_needs_command" -f -a "forget" -d 'Take a machine, or a service on it, as gone'
complete -c grid -n "__fish_grid_needs_command" -f -a "provisions" -d 'List accounts and who uses them'
complete -c grid -n "__fish_grid_needs_command" -f -a "compose" -d 'Show what a machine\'s next send would hold'
complete -c grid -n "__fish_grid_needs_command" -f -a "history" -d 'List what was done, by whom, and how it ended'
complete -c grid -n "__fish_grid_needs_command" -f -a "unlock" -d 'Take away a lock whose holder is gone'
complete -c grid -n "__fish_grid_needs_command" -f -a "evidence" -d 'Show what a site\'s gateways reported of their completed ingests'
complete -c grid -n "__fish_grid_needs_command" -f -a "signals" -d 'Provider load and how it crosses sites: resources for Kubernetes'
complete -c grid -n "__fish_grid_needs_command" -f -a "site" -d 'Run a machine\'s site daemon, which serves and pulls provider load'
complete -c grid -n "__fish_grid_needs_command" -f -a "completions" -d 'Print the completions of a shell'
complete -c grid -n "__fish_grid_needs_command" -f -a "man" -d 'Write the man pages'
complete -c grid -n "__fish_grid_using_subcommand init" -l name -d 'The mesh\'s name; absent: the folder\'s' -r
complete -c grid -n "__fish_grid_using_subcommand init" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand init" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand init" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand init" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand init" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand init" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand init" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand try" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand try" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand try" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand try" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand try" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand try" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand try" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand check" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand check" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand check" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand check" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand check" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand check" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand check" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand push" -l parallel -d 'How many machines are sent to at a time' -r
complete -c grid -n "__fish_grid_using_subcommand push" -l max-rounds -d 'How many rounds may follow the first; absent: four more than twice the longest chain of consumers' -r
complete -c grid -n "__fish_grid_using_subcommand push" -l timeout -d 'How long the whole send to a machine may take (90s, 10m); absent: as long as its steps may' -r
complete -c grid -n "__fish_grid_using_subcommand push" -l max-failures -d 'After N failed machines send to no further one, but to a provider that somebody waits for' -r
complete -c grid -n "__fish_grid_using_subcommand push" -l wait -d 'Wait for another push to end, for so long (10m if nothing is said)' -r
complete -c grid -n "__fish_grid_using_subcommand push" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand push" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand push" -l behind -d 'Send to every machine that is behind, and contact no other'
complete -c grid -n "__fish_grid_using_subcommand push" -l all -d 'Name every machine that is not on hold'
complete -c grid -n "__fish_grid_using_subcommand push" -l dry-run -d 'Show what would be minted and sent; do neither, write nothing'
complete -c grid -n "__fish_grid_using_subcommand push" -l take-over -d 'Replace whatever a machine holds, even if another store sent it'
complete -c grid -n "__fish_grid_using_subcommand push" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand push" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand push" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand push" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand push" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand status" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand status" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand status" -l exit-code -d 'Exit with 6 when something is behind, waits, failed, or is owed by a machine on hold: a grant or a revocation'
complete -c grid -n "__fish_grid_using_subcommand status" -l probe -d 'Ask each machine now whether it answers, and whether it holds what the store knows of'
complete -c grid -n "__fish_grid_using_subcommand status" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand status" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand status" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand status" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand status" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand assign" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand assign" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand assign" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand assign" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand assign" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand assign" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand assign" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand unassign" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand unassign" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand unassign" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand unassign" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand unassign" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand unassign" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand unassign" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand issue" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand issue" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand issue" -l outside -d 'The consumer is outside of this mesh, so the declaration does not know it'
complete -c grid -n "__fish_grid_using_subcommand issue" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand issue" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand issue" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand issue" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand issue" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand revoke" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand revoke" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand revoke" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand revoke" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand revoke" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand revoke" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand revoke" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l site -d 'The identity of a site, and not an account: a machine or @TAG' -r
complete -c grid -n "__fish_grid_using_subcommand rotate" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand rotate" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand rotate" -l all -d 'All accounts that are not revoked'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l cut -d 'Close the older generations at once, before the consumer has the new one'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l ca -d 'The mesh\'s certificate authority, and not an account'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand rotate" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand rotate" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand rotate" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand hold" -l until -d 'The first day on which it is sent to again' -r
complete -c grid -n "__fish_grid_using_subcommand hold" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand hold" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand hold" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand hold" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand hold" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand hold" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand hold" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand unhold" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand unhold" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand unhold" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand unhold" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand unhold" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand unhold" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand unhold" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand trust" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand trust" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand trust" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand trust" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand trust" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand trust" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand trust" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand forget" -l service -d 'Only this service on it' -r
complete -c grid -n "__fish_grid_using_subcommand forget" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand forget" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand forget" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand forget" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand forget" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand forget" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand forget" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand provisions" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand provisions" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand provisions" -l show-secrets -d 'Print secrets'
complete -c grid -n "__fish_grid_using_subcommand provisions" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand provisions" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand provisions" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand provisions" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand provisions" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand compose" -l out -d 'Write the release to this folder, which must be new or empty; with @TAG, to a folder in it for each machine' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand compose" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand compose" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand compose" -l show-secrets -d 'Write secrets too'
complete -c grid -n "__fish_grid_using_subcommand compose" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand compose" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand compose" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand compose" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand compose" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand history" -l last -d 'How many entries to list' -r
complete -c grid -n "__fish_grid_using_subcommand history" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand history" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand history" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand history" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand history" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand history" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand history" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand unlock" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand unlock" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand unlock" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand unlock" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand unlock" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand unlock" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand unlock" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l file -d 'Read this status document: evidence.json in a site\'s state folder; `-`: standard input' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l exit-code -d 'Exit with 6 when the condition is not clean: ingests were rejected, or nobody reported lately'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -a "clear" -d 'End evidence that stands against a process'
complete -c grid -n "__fish_grid_using_subcommand evidence; and not __fish_seen_subcommand_from clear report" -a "report" -d 'Report to this machine\'s site what a gateway rejected'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l file -d 'A status document of this machine, while its daemon runs or not' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l epoch -d 'The process: its epoch, as `grid evidence` shows it' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l stale -d 'Every process with evidence in force that has reported nothing for more than 300 s'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from clear" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l state -d 'The file of what is kept between two reports; made at the first' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l config -d 'The site\'s own site.toml, which says where it listens and who it is' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l certificate -d 'Instead of --config: the site\'s own certificate, in PEM' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l key -d 'Its key' -r -F
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l host -d 'Where the site listens; this machine, unless it is said' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l port -d 'At which port; 9091, unless it is said' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l rejected -d 'How many ingests the process has rejected since its start, in all' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l add -d 'How many it has rejected since the last report' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l replica -d 'What the process calls itself, a DNS label; kept from one report to the next' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l timeout -d 'How long to try' -r
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l clean -d 'The process rejects no ingest now'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l not-clean -d 'It does, or nobody can say that it does not'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l new-process -d 'The process has started anew: draw another epoch, and count from 0'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand evidence; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -f -a "render" -d 'Print the mesh as Kubernetes resources: GridNetwork, and a GridSite for each machine'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -f -a "crd" -d 'Print the definitions of these resources'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -f -a "diff" -d 'Say which sites a push would restart, and why'
complete -c grid -n "__fish_grid_using_subcommand signals; and not __fish_seen_subcommand_from render crd diff get" -f -a "get" -d 'Read a site over mutual TLS: its signals, and how old they are'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l site -d 'For the cluster of this machine\'s site' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l namespace -d 'The namespace of the Secrets; absent: as `[signals.resources]` says, else grid-system' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l group -d 'Their group; absent: as `[signals.resources]` says, else grid.praxis-proxy.io' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l version -d 'Their version; absent: as `[signals.resources]` says, else v1alpha1' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l field-names -d 'Which names fields have; absent: as `[signals.resources]` says, else new' -r -f -a "old\t'swimKeyRef, egress'
new\t'swimKeySecretRef, gatewayEndpoint'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l secrets -d 'The Secrets too, of the one site; never to a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from render" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l group -d 'Their group; absent: as `[signals.resources]` says, else grid.praxis-proxy.io' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l version -d 'Their version; absent: as `[signals.resources]` says, else v1alpha1' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l field-names -d 'Which names fields have; absent: as `[signals.resources]` says, else new' -r -f -a "old\t'swimKeyRef, egress'
new\t'swimKeySecretRef, gatewayEndpoint'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from crd" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l exit-code -d 'Exit with 6 if a push would change something at a site'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l target -d 'The signals of this provider only' -r
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l certificate -d 'Show this certificate (PEM) instead of the site\'s own; needed where the machine has `pins` of its own' -r -F
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l key -d 'The certificate\'s key (PEM)' -r -F
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand signals; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -f -a "run" -d 'Run the site daemon of this machine'
complete -c grid -n "__fish_grid_using_subcommand site; and not __fish_seen_subcommand_from run check" -f -a "check" -d 'Say whether the site daemon of this machine runs as declared'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l config -d 'Its site.toml, which a push delivers. One: a daemon serves one network' -r -F
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l log -d 'How it writes its log to stderr' -r -f -a "text\t'A line for people'
json\t'An object a line'"
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l config -d 'Its site.toml, which a push delivers' -r -F
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand site; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c grid -n "__fish_grid_using_subcommand completions" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand completions" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand completions" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand completions" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand completions" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand completions" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c grid -n "__fish_grid_using_subcommand man" -l mesh -d 'The folder of mesh.toml; absent: this one, or the nearest above it that has one' -r -f -a "(__fish_complete_directories)"
complete -c grid -n "__fish_grid_using_subcommand man" -l color -d 'When to colour the output (NO_COLOR is heeded)' -r -f -a "auto\t'On a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c grid -n "__fish_grid_using_subcommand man" -l json -d 'Print the result as JSON (its schema is under schemas/)'
complete -c grid -n "__fish_grid_using_subcommand man" -s v -l verbose -d 'Say more: each step on each machine, and what its commands print'
complete -c grid -n "__fish_grid_using_subcommand man" -l quiet -d 'Say less; machines sent to and machines not current are named all the same'
complete -c grid -n "__fish_grid_using_subcommand man" -l yes -d 'Answer yes to what would be asked on a terminal'
complete -c grid -n "__fish_grid_using_subcommand man" -s h -l help -d 'Print help'
