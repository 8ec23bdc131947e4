#!/bin/sh
# The least that a cycle costs: what veri must do for a step, by sh and git alone, with nothing in between.
#
#   floor.sh setup DIR FILES    a repository of FILES files in DIR/repo, its clean checkout in DIR/clean
#   floor.sh run   DIR STEPS    that many steps; prints one event a line and waits for a line back, so that
#                               whoever reads it can sync each before the next thing happens
#
# One step: 6 leaves in sessions of their own with output to files (3 developers, 3 verifiers), 3 candidate
# trees by an index beside the repository's, 3 refreshes of the clean checkout, 4 suite runs there, 2 commits,
# 24 events.
set -eu
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_TERMINAL_PROMPT=0 LC_ALL=C
export GIT_AUTHOR_NAME=f GIT_AUTHOR_EMAIL=f@x GIT_COMMITTER_NAME=f GIT_COMMITTER_EMAIL=f@x
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsync GIT_CONFIG_VALUE_0=committed
command=$1 dir=$2 count=$3
repo=$dir/repo clean=$dir/clean index=$dir/candidate.index laid=$dir/clean.index

setup() {
  mkdir -p "$repo/src" "$repo/tests" "$clean" "$dir/leaf"
  cd "$repo"
  git init -q -b main .
  git config gc.auto 0
  git config maintenance.auto false
  i=0
  while [ "$i" -lt "$count" ]; do
    echo "file $i" >"src/f$i.txt"
    i=$((i + 1))
  done
  echo 'n=0' >src/state.sh
  # shellcheck disable=SC2016
  echo '[ $n -ge 0 ]' >tests/t0.sh
  # shellcheck disable=SC2016
  echo 'set -e; . ./src/state.sh; for t in tests/*.sh; do [ ! -e "$t" ] || . "./$t"; done' >suite.sh
  git add -A
  git commit -q -m base
  cp .git/index "$index"
  GIT_INDEX_FILE=$laid git --git-dir=.git --work-tree="$clean" read-tree --reset -u 'HEAD^{tree}'
  echo 0 >"$dir/n"
}

event() {
  printf '{"v":1,"step":%s,"event":"%s","of":"%s","padding":"%s"}\n' "$k" "$1" "$2" "$padding"
  read -r _
}

leaf() { # ROLE PHASE SCRIPT
  event launch "$1"
  ended=0
  setsid sh -c "$3" >"$dir/leaf/$2-$1.out" 2>"$dir/leaf/$2-$1.err" </dev/null || ended=$?
  echo "$ended" >"$dir/leaf/$2-$1.exit"
  event exit "$1"
}

refresh() { # the candidate, and the clean checkout brought to it
  GIT_INDEX_FILE=$index git add -A
  new=$(GIT_INDEX_FILE=$index git write-tree)
  GIT_INDEX_FILE=$laid git --git-dir=.git --work-tree="$clean" read-tree -m -u "$old" "$new"
  old=$new
}

suite() { # PHASE
  ended=0
  (cd "$clean" && exec setsid sh suite.sh) >"$dir/leaf/suite.out" 2>&1 </dev/null || ended=$?
  event check "$1 $ended"
}

commit() { # SUBJECT
  event commit "$1"
  GIT_INDEX_FILE=$index git commit -q -m "$1

Veri-Step: $k"
  event commit "$1"
}

run() {
  cd "$repo"
  padding=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
  read -r before <"$dir/n"
  old=$(git rev-parse 'HEAD^{tree}')
  i=0
  while [ "$i" -lt "$count" ]; do
    i=$((i + 1))
    k=$((before + i))
    event step-start ""
    leaf developer red "echo '[ \$n -ge $k ]' >tests/t$k.sh"
    refresh
    suite red
    leaf verifier red "echo approve"
    event verdict red
    leaf developer green "echo 'n=$k' >src/state.sh"
    refresh
    suite green
    leaf verifier green "echo approve"
    event verdict green
    commit "step $k"
    leaf developer refactor "echo 'n=$k # plain' >src/state.sh"
    refresh
    suite refactor
    leaf verifier refactor "echo approve"
    event verdict refactor
    suite again
    commit "refactor: step $k"
  done
  echo "$k" >"$dir/n"
}
"$command"
