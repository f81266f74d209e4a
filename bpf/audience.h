/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whose a process or a socket is: of an agent's session, of our own proxy, or of neither. Told by cgroups alone, which only
 * root can change; never by a mark or a user, which others may have too. Included by connect.bpf.c, after its accessors.
 */
#ifndef AGENTSH_AUDIENCE_H
#define AGENTSH_AUDIENCE_H

/*
 * Levels below the root of the hierarchy that are looked at: ours are at 2 on a host, deeper in nested containers. Asked one
 * by one, because a process in a cgroup namespace cannot know how deep it is.
 */
#define AGENTSH_MAX_LEVEL 16

struct agentsh_audience {
	__u64 session; /* id of the session's cgroup, 0: none */
	__u64 ours;    /* 1: of the proxy's workers */
	__u64 below;   /* while looking: the level above was that of all sessions */
};

INLINE void look_at(struct agentsh_audience *who, struct agentsh_config *current, __u64 id)
{
	if (who->below && !who->session)
		who->session = id;
	who->below = id == current->sessions;
	if (id == current->workers)
		who->ours = 1;
}

/* Of the current task, whoever made the socket that it uses. */
INLINE void audience_of_task(struct agentsh_audience *who, struct agentsh_config *current)
{
	__u64 id;
	int level;

	if (!current->sessions)
		return;
#pragma unroll
	for (level = 1; level <= AGENTSH_MAX_LEVEL; level++) {
		id = bpf_get_current_ancestor_cgroup_id(level);
		if (!id)
			break;
		look_at(who, current, id);
	}
}

/* Of whoever made the socket, whoever uses it now. */
INLINE void audience_of_socket(struct agentsh_audience *who, struct agentsh_config *current, struct __sk_buff *skb)
{
	__u64 id;
	int level;

	if (!current->sessions)
		return;
#pragma unroll
	for (level = 1; level <= AGENTSH_MAX_LEVEL; level++) {
		id = bpf_skb_ancestor_cgroup_id(skb, level);
		if (!id)
			break;
		look_at(who, current, id);
	}
}

/* Say whether a rule is for them. */
INLINE int concerns(struct agentsh_audience *who, struct agentsh_config *current, __u32 fate)
{
	if ((fate & AGENTSH_UNLESS_OURS) && who->ours)
		return 0;
	return !(current->switches & AGENTSH_SESSIONS_ONLY) || who->session;
}

#endif
