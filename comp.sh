. /srv/hand/iface/go.env; PATH=/srv/wt/iface/.venv/bin:$PATH
eval "$(agentsh-net completion bash)"
comp() { COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); COMPREPLY=(); _agentsh_net_completion agentsh-net; echo "$* => ${COMPREPLY[*]}"; }
comp agentsh-net ""; comp agentsh-net mc; comp agentsh-net mcp ca; comp agentsh-net mcp calls --se; comp agentsh-net mcp calls --action ""; comp agentsh-net mcp pins ""; comp agentsh-net policy check /srv/hand/ifa; time comp agentsh-net policy e
