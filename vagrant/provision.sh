#!/bin/sh
# Makes a bare Debian or Ubuntu ready for the tests. Runs as root inside the machine; running it again changes nothing.
set -eu
cd "${AGENTSH_NET_SOURCE:-/src/agentsh-net}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# What the tests use beside what `./dev setup` installs by itself.
apt-get install -y -qq --no-install-recommends ca-certificates gcc libc6-dev iproute2 procps kmod >/dev/null
./dev setup
