#!/bin/sh
# Hook of Palaver for coding agents: palaver-hook.sh session-start | prompt | tool | session-end
#
# The script always succeeds and prints only the reply of `palaver hooks run`. If there is nothing to do, it ends
# without starting another program. See docs/plugin.md.

exec 2>/dev/null

if [ -n "$PALAVER_HOME" ]; then
    home=$PALAVER_HOME
elif [ -d "$HOME/Library/Application Support" ]; then
    home="$HOME/Library/Application Support/palaver"
else
    home=${XDG_DATA_HOME:-$HOME/.local/share}/palaver
fi
[ -s "$home/palaver.db" ] || exit 0 # Nothing is archived yet.
[ -z "$PALAVER_OWN_RUN" ] || exit 0 # Palaver itself started this agent, to ask its model.

chosen='session-start' # the default of the setting `hooks`
if [ -r "$home/config.toml" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in 'hooks ='* | 'hooks='*) chosen=$line ;; esac
    done <"$home/config.toml"
fi

event=$1
case $event in session-end) needed='session-start' ;; *) needed=$event ;; esac
case $chosen in *"$needed"*) ;; *) exit 0 ;; esac

# Agents that a desktop starts have a short PATH. pipx and uv install programs in ~/.local/bin.
PATH=$PATH:$HOME/.local/bin:/opt/homebrew/bin:/usr/local/bin
command -v palaver >/dev/null || exit 0

if [ "$event" = session-end ]; then
    case ${PALAVER_READ_ONLY:-0} in 0 | false) ;; *) exit 0 ;; esac
    umask 077
    # The agent sends one line of JSON. A single read by `dd` limits its size.
    call=$(dd bs=8192 count=1)
    case $call in '' | *'
'*) exit 0 ;; esac
    printf '%s\n' "$call" >>"$home/ended-sessions" || exit 0
    palaver hooks run session-end </dev/null >/dev/null &
    exit 0
fi
palaver hooks run "$event"
exit 0
