/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ABI between the probes and agentsh_net/core/wire.py: map keys, map values, the record. A test compiles this file
 * with the host's compiler and compares every size and offset with Python's. UAPI types only, no padding left implicit.
 */
#ifndef AGENTSH_H
#define AGENTSH_H

/* rules: a full host map refuses the next insert (loudly); it never evicts a denial, as an LRU map would. */
#define AGENTSH_MAX_RULES 262144
/* records: 1 MiB holds 10,922 of them: a flood of 100,000 a second while the reader pauses for 0.1 s. */
#define AGENTSH_RING_BYTES (1 << 20)
#define AGENTSH_COMM_BYTES 16

enum agentsh_fate {
	AGENTSH_NONE = 0,
	AGENTSH_DENY = 1,
	AGENTSH_TAG = 2,
};

enum agentsh_hook {
	AGENTSH_CONNECT4 = 1,
	AGENTSH_CONNECT6 = 2,
	AGENTSH_SENDMSG4 = 3,
	AGENTSH_SENDMSG6 = 4,
};

/* record.flags: the verdict was a denial, but the enforce switch was off. */
#define AGENTSH_OBSERVED 1

/* Slots of the per-CPU counters. */
enum agentsh_counter {
	AGENTSH_DENIED = 0,
	AGENTSH_TAGGED = 1,
	AGENTSH_LOST = 2, /* records that the ring had no room for; their verdicts stood all the same */
	AGENTSH_COUNTERS = 3,
};

/* An endpoint. IPv4 is ::ffff:a.b.c.d; the port is in network byte order, 0 is every port and protocol. */
struct agentsh_key {
	__u8 address[16];
	__u16 port;
	__u16 reserved;
};

struct agentsh_rule {
	__u32 fate;
};

/* The one element of the config map. */
struct agentsh_config {
	__u32 generation; /* of the plan that the rules belong to */
	__u32 enforce;    /* 0: denials are recorded as observed and let pass */
};

struct agentsh_record {
	__u64 time_ns; /* since boot, suspend included */
	__u64 cgroup_id;
	__u64 netns_cookie;
	__u64 socket_cookie;
	__u32 pid;
	__u32 tid;
	__u32 uid;
	__u32 generation;
	__u8 address[16]; /* canonical, as looked up */
	__u16 port;       /* network byte order */
	__u16 protocol;   /* IPPROTO_*; 16 bits because of MPTCP, 262 */
	__u8 family;      /* AF_* of the address as the process gave it */
	__u8 fate;
	__u8 hook;
	__u8 flags;
	char comm[AGENTSH_COMM_BYTES];
};

#endif
