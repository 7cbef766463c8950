#!/bin/sh
# Hook of Palaver for coding agents: palaver-hook.sh EVENT, as in `palaver hooks run EVENT`
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

event=$1
case $event in session-end) needed='session-start' ;; *) needed=$event ;; esac
chosen='session-start' # the default of the setting `hooks`
if [ -r "$home/config.toml" ]; then
    # A list that is not simply on one line means "let Palaver decide", so every event is let through.
    while IFS=' 	=' read -r key value || [ -n "$key" ]; do
        case $key in
            hooks | '"hooks"' | "'hooks'")
                case $value in
                    *[#\\]*) chosen=$needed ;;
                    '['*']'*) chosen=$value ;;
                    *) chosen=$needed ;;
                esac
                ;;
        esac
    done <"$home/config.toml"
fi

case $chosen in *"$needed"*) ;; *) exit 0 ;; esac

plugin=${0%/*}/..
. "$plugin/hooks/find-palaver.sh"
find_palaver || exit 0

if [ "$event" = session-end ]; then
    # The same words as in core/home.py
    case $PALAVER_READ_ONLY in
        '' | 0 | [Ff] | [Ff][Aa][Ll][Ss][Ee] | [Nn] | [Nn][Oo] | [Oo][Ff][Ff]) ;;
        *) exit 0 ;;
    esac
    umask 077
    # JSON strings contain no line breaks, so a call of several lines can be joined. Eight KiB bound the size.
    call=$(head -c 8192 | tr -d '\r\n')
    [ -n "$call" ] || exit 0
    printf '%s\n' "$call" >>"$home/ended-sessions" || exit 0
    "$program" hooks run session-end </dev/null >/dev/null &
    exit 0
fi
"$program" hooks run "$event"
exit 0
