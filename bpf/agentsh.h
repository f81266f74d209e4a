/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The ABI between the probes and agentsh_net/core/abi/wire.py: map keys, map values, the record. A test compiles this file
 * with the host's compiler and compares every size and offset with Python's. UAPI types only, no padding left implicit.
 */
#ifndef AGENTSH_H
#define AGENTSH_H

/* rules: a full host map refuses the next insert (loudly); it never evicts a denial, as an LRU map would. */
#define AGENTSH_MAX_RULES 262144
/* records: 1 MiB holds 10,082 of them: a flood of 100,000 a second while the reader pauses for 0.1 s. */
#define AGENTSH_RING_BYTES (1 << 20)
#define AGENTSH_COMM_BYTES 16
/*
 * The sieve: two bits for each of 2^20 values of a hash of the address, in words of 32 values, 256 KiB together. No bit
 * set: no rule. A bit set: ask `rules`; with 100,000 addresses one of eleven others is asked for in vain.
 */
#define AGENTSH_SIEVE_BITS 20
#define AGENTSH_SIEVE_WORDS (1 << (AGENTSH_SIEVE_BITS - 5))
#define AGENTSH_SIEVE_DENY 1
#define AGENTSH_SIEVE_TAG 2 /* set for every value while sessions reach only what is declared */
/* One odd multiplier for each 32-bit word of an address as it lies in memory; the sum's upper bits are the hash. */
#define AGENTSH_SIEVE_A 0x9e3779b97f4a7c15ULL
#define AGENTSH_SIEVE_B 0xc2b2ae3d27d4eb4fULL
#define AGENTSH_SIEVE_C 0x165667b19e3779f9ULL
#define AGENTSH_SIEVE_D 0xd6e8feb86659fd93ULL
/* Prefixes to which sessions may connect. */
#define AGENTSH_MAX_PREFIXES 1024
/* Names of declared servers. */
#define AGENTSH_MAX_NAMES 16384
/* RFC 6066 allows 65,535 bytes, the DNS 253. */
#define AGENTSH_NAME_BYTES 256

/*
 * SNI, SNI_OPEN: the name in a TLS ClientHello decides; without one it is a denial, or a tag. UNDECLARED stands in no map: a
 * session goes where nothing is declared (undeclared.h).
 */
enum agentsh_fate {
	AGENTSH_NONE = 0,
	AGENTSH_DENY = 1,
	AGENTSH_TAG = 2,
	AGENTSH_SNI = 3,
	AGENTSH_SNI_OPEN = 4,
	AGENTSH_UNDECLARED = 5,
};

/* rule.fate: the fate is the low byte. Our own proxy may reach this endpoint: it is an LLM provider's. */
#define AGENTSH_FATE_MASK 0xff
#define AGENTSH_UNLESS_OURS 0x100
/* Likewise: sessions may come here that may come nowhere else. */
#define AGENTSH_DECLARED 0x200

enum agentsh_hook {
	AGENTSH_CONNECT4 = 1,
	AGENTSH_CONNECT6 = 2,
	AGENTSH_SENDMSG4 = 3,
	AGENTSH_SENDMSG6 = 4,
	AGENTSH_EGRESS = 5,
	AGENTSH_HELLO = 6, /* an agentsh_hello_record */
};

/* What was found where a ClientHello should be. */
enum agentsh_finding {
	AGENTSH_NAMED = 1,     /* a server name */
	AGENTSH_NAMELESS = 2,  /* a ClientHello without one */
	AGENTSH_ENCRYPTED = 3, /* an encrypted ClientHello around a name that is nobody's: the true name is inside */
	AGENTSH_NO_HELLO = 4,  /* something else, or nothing that can be read within the limits of hello.h */
	AGENTSH_UNSEEN = 5,    /* the connection is older than the rule, or skips bytes */
	AGENTSH_URGENT = 6,    /* urgent data: what the server reads is not what is sent */
	AGENTSH_FORGED = 7,    /* TCP made by hand */
	AGENTSH_MULTIPATH = 8, /* MPTCP: the rest may take another way, and be put together otherwise */
};

/* record.flags: the verdict was a denial, or undeclared, and was let pass: the switch for it was off. */
#define AGENTSH_OBSERVED 1

/* Slots of the per-CPU counters. */
enum agentsh_counter {
	AGENTSH_DENIED = 0,
	AGENTSH_TAGGED = 1,
	AGENTSH_LOST = 2, /* records that the ring had no room for; their verdicts stood all the same */
	AGENTSH_LAST = 3, /* no count: when a connect was refused last on this CPU, in ns of its clock */
	AGENTSH_COUNTERS = 4,
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

/* Where sessions may connect besides `rules`; `bits` counts those of all that follows it, as LPM tries have it. */
struct agentsh_prefix {
	__u32 bits;
	__u16 port; /* as in agentsh_key */
	__u16 reserved;
	__u8 address[16];
};
#define AGENTSH_PREFIX_BITS 160

/* The one element of the config map. */
struct agentsh_config {
	__u32 generation; /* of the plan that the rules belong to */
	__u32 switches;   /* see below */
	__u64 sessions;   /* id of the cgroup below which every session has one; 0: there is none, nor for the workers */
	__u64 workers;    /* id of the cgroup of the proxy's workers */
};

#define AGENTSH_PACE_NS 32000 /* between two refused connects on a CPU, at least */
/* How often the clock is looked at meanwhile, at most, at 15 to 30 ns: in few turns, since the verifier walks each. */
#define AGENTSH_PACE_TURNS 32
#define AGENTSH_PACE_LOOKS 64

/* config.switches */
#define AGENTSH_ENFORCE 1       /* unset: denials are recorded as observed and let pass */
#define AGENTSH_SESSIONS_ONLY 2 /* network.scope: who is in no session is not looked at */
#define AGENTSH_EGRESS_TELL 4   /* network.egress: sessions that connect where nothing is declared are told of */
#define AGENTSH_EGRESS_REFUSE 8 /* and refused, whatever they send it by */

/*
 * Who made a socket whose packets are judged one by one (raw, ping, UDP-Lite, SCTP; streams to shared endpoints), kept in the
 * socket: a packet does not say who sent it.
 */
struct agentsh_maker {
	__u32 pid;
	__u32 tid;
	char comm[AGENTSH_COMM_BYTES];
};

struct agentsh_record {
	__u64 time_ns; /* since boot, suspend included */
	__u64 cgroup_id;
	__u64 netns_cookie;
	__u64 socket_cookie;
	__u32 pid; /* 0: unknown */
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
	__u64 session; /* id of the session's cgroup; 0: none */
};

/* A server's name: lower case, no dot at its end, zeros behind it. Port 0 (else network byte order) is every port. */
struct agentsh_name {
	char name[AGENTSH_NAME_BYTES];
	__u16 port;
	__u16 reserved;
};

/*
 * How far a connection to a shared endpoint has been read: kept in its socket, whose memory it counts as, so that no other's can
 * push it out. Sequence numbers as in TCP.
 */
struct agentsh_stream {
	__u32 start;       /* of the first byte */
	__u32 next;        /* of the first byte that was not read */
	__u32 left;        /* bytes of the ClientHello that no field has claimed */
	__u32 skip;        /* bytes of the current field that say nothing */
	__u32 record_left; /* bytes of the current TLS record */
	__u32 value;       /* of the number that is being read */
	__u32 at;          /* place in the packet that is being read */
	__u16 broken;      /* what was read is no ClientHello */
	__u16 field;       /* length of the extension that is being read; then bytes left of the name */
	__u16 length;      /* of the name */
	__u8 verdict;      /* AGENTSH_READING, _PASSED, _REFUSED */
	__u8 phase;        /* see hello.h */
	__u8 have;         /* bytes of the number that were read */
	__u8 reserved;
	__u8 record_have;  /* bytes of the record's header that were read */
	__u8 marks;        /* AGENTSH_MARK_* */
	struct agentsh_name name;
};

enum agentsh_reading {
	AGENTSH_READING = 0,
	AGENTSH_PASSED = 1,
	AGENTSH_REFUSED = 2,
};

struct agentsh_hello_record {
	struct agentsh_record record;
	__u8 source[16]; /* of the connection; IPv4 mapped */
	__u16 source_port; /* network byte order */
	__u16 finding;
	__u32 reserved;
	char name[AGENTSH_NAME_BYTES];
};

#endif
