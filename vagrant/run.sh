#!/bin/sh
# vagrant/run.sh [debian12|ubuntu2404|all] [PYTEST ARGS]: the kernel tests in a Vagrant machine, the same entry as `./dev vm`.
set -eu
cd "$(dirname "$0")"
boxes=${1:-all}
[ $# -eq 0 ] || shift
[ "$boxes" != all ] || boxes="debian12 ubuntu2404"
failed=0
for box in $boxes; do
    vagrant up --provision "$box"
    vagrant rsync "$box"
    vagrant ssh "$box" -c "cd /src/agentsh-net && sudo sh tests/vm/inside $*" || failed=1
done
exit $failed
