"""Tab completion of the command audit, for bash and zsh."""

BASH = """\
_audit() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="${{COMP_WORDS[1]}}"
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    case "$command" in
        completion) COMPREPLY=($(compgen -W "bash zsh" -- "$word")) ;;
        try) COMPREPLY=($(compgen -f -X '!*.py' -- "$word") $(compgen -d -- "$word")) ;;
        new)
            if [ "${{COMP_WORDS[COMP_CWORD-1]}}" = --kind ]; then
                COMPREPLY=($(compgen -W "{kinds}" -- "$word"))
            else
                COMPREPLY=($(compgen -W "--kind --with" -- "$word") $(compgen -f -- "$word"))
            fi ;;
        *) COMPREPLY=($(compgen -f -X '!*.y*ml' -- "$word")
                      $(compgen -d -- "$word" | grep -vE '(^|/)(results|\\.snakemake)$')) ;;
    esac
}}
complete -o filenames -F _audit audit
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


def script(shell: str, commands: list[str], kinds: list[str]) -> str:
    """What a shell reads to complete commands, studies and files."""
    text = BASH.format(commands=" ".join(commands), kinds=" ".join(kinds))
    return (ZSH if shell == "zsh" else "") + text
