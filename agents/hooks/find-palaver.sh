# shellcheck shell=sh
# Functions of the plugin's scripts, which set `plugin` to the folder of the plugin first.

# Set `program` to the path of the program `palaver`. Fail if it is not installed.
#
# Agents that a desktop starts have a short PATH. pipx and uv install programs in ~/.local/bin. The last two folders
# are those of the environment that contains the plugin, and of an environment beside it in a checkout.
find_palaver() {
    set -f
    IFS=:
    for folder in $PATH "$HOME/.local/bin" /opt/homebrew/bin /usr/local/bin "$plugin/../../../../../bin" "$plugin/../.venv/bin"; do
        program=$folder/palaver
        # Claude Code adds the folder bin of the plugin to PATH. That script is not the program.
        if [ -f "$program" ] && [ -x "$program" ] && ! [ "$program" -ef "$plugin/bin/palaver" ]; then
            unset IFS
            set +f
            return 0
        fi
    done
    unset IFS
    set +f
    return 1
}
