#!/bin/sh
# A leaf with a tree that is hard to end: SESSIONS sessions of MEMBERS processes each, then it says `ready` and waits.
#
# By turns a session is a child's; a daemon's (its parent is gone); a child's with no open file; a daemon's with no
# open file and an empty environment. `ignoring`: none of them heeds TERM. In the working folder:
# `up` has a line for each session that stands.
#
#   sh tree.sh SESSIONS MEMBERS obeying|ignoring
sessions=$1 members=$2
[ "$3" = ignoring ] && trap '' TERM

# The leader of a session and its members.
session='i=1
while [ $i -lt '"$members"' ]; do sleep 1000 & i=$((i + 1)); done
echo >>up
wait'

s=0
while [ $s -lt "$sessions" ]; do
    case $((s % 4)) in
    0) setsid sh -c "$session" & ;;
    1) (setsid sh -c "$session" &) ;;
    2) setsid sh -c "$session" <&- >&- 2>&- & ;;
    3) (env -i "PATH=$PATH" setsid sh -c "$session" <&- >&- 2>&- &) ;;
    esac
    s=$((s + 1))
done
while [ ! -e up ] || [ "$(wc -l <up)" -lt "$sessions" ]; do sleep 0.02; done
echo >ready
# A shell that heeds TERM must not wait for a command first.
while :; do sleep 1000 & wait $!; done
