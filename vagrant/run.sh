#!/bin/sh
# vagrant/run.sh [debian12|ubuntu2404|all] [PYTEST ARGS]: the kernel tests in a Vagrant machine, the same entry as `./dev vm`.
set -eu
cd "$(dirname "$0")"
boxes=${1:-all}
[ $# -eq 0 ] || shift
[ "$boxes" != all ] || boxes="debian12 ubuntu2404"
quoted() { for word in "$@"; do printf " '%s'" "$(printf '%s' "$word" | sed "s/'/'\\\\''/g")"; done; }
# The checkout as it is now before it is provisioned; the tests' own /tmp and /run, which the machine never sees.
tests="cd /src/agentsh-net && sudo unshare -m env AGENTSH_NET_VM=1 sh tests/vm/inside$(quoted "$@")"
failed=0
for box in $boxes; do
    vagrant up --no-provision "$box" && vagrant rsync "$box" && vagrant provision "$box" && vagrant ssh "$box" -c "$tests" || failed=1
done
exit $failed
