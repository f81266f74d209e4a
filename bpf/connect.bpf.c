// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Refuses (EPERM) or records connects and datagrams to the endpoints in `rules`, and drops every packet to a denied one
 * that got past those hooks: raw and ping sockets, source routes, aliases, connections that stood before the rule.
 * Attached at the cgroup v2 root. The verdict depends on the maps alone: a full ring costs a record, which is counted, and
 * never a verdict. Compiled by BCC, or by clang for libbpf: only the block below and the accessors differ.
 */
#ifdef AGENTSH_BCC

#define BPF_LICENSE Dual MIT/GPL
#include "agentsh.h"
#define AGENTSH_PROGRAM(section)
BPF_F_TABLE("hash", struct agentsh_key, struct agentsh_rule, rules, AGENTSH_MAX_RULES, BPF_F_NO_PREALLOC);
BPF_F_TABLE("lpm_trie", struct agentsh_prefix, __u32, prefixes, AGENTSH_MAX_PREFIXES, BPF_F_NO_PREALLOC);
BPF_TABLE("array", __u32, __u64, sieve, AGENTSH_SIEVE_WORDS);
BPF_TABLE("array", __u32, struct agentsh_config, config, 1);
BPF_TABLE("percpu_array", __u32, __u64, counters, AGENTSH_COUNTERS);
BPF_F_TABLE("hash", struct agentsh_name, struct agentsh_rule, names, AGENTSH_MAX_NAMES, BPF_F_NO_PREALLOC);
BPF_SK_STORAGE(makers, struct agentsh_maker);
BPF_SK_STORAGE(streams, struct agentsh_stream);
BPF_RINGBUF_OUTPUT(records, AGENTSH_RING_BYTES / 4096);

static inline struct agentsh_rule *find_rule(struct agentsh_key *key) { return rules.lookup(key); }
static inline __u32 *find_prefix(struct agentsh_prefix *place) { return prefixes.lookup(place); }
static inline __u64 *find_sieve(__u32 *word) { return sieve.lookup(word); }
static inline struct agentsh_config *find_config(__u32 *slot) { return config.lookup(slot); }
static inline __u64 *find_counter(__u32 *slot) { return counters.lookup(slot); }
static inline struct agentsh_maker *find_maker(struct bpf_sock *socket) { return makers.sk_storage_get(socket, 0, 0); }
static inline struct agentsh_maker *make_maker(struct bpf_sock *socket) { return makers.sk_storage_get(socket, 0, 1 /* CREATE */); }
static inline struct agentsh_rule *find_name(struct agentsh_name *name) { return names.lookup(name); }
static inline struct agentsh_stream *find_stream(struct bpf_sock *socket) { return streams.sk_storage_get(socket, 0, 0); }
static inline struct agentsh_stream *make_stream(struct bpf_sock *socket) { return streams.sk_storage_get(socket, 0, 1 /* CREATE */); }
static inline struct agentsh_record *reserve_record(void) { return records.ringbuf_reserve(sizeof(struct agentsh_record)); }
static inline void submit_record(struct agentsh_record *record) { records.ringbuf_submit(record, 0); }
static inline struct agentsh_hello_record *reserve_hello(void) { return records.ringbuf_reserve(sizeof(struct agentsh_hello_record)); }
static inline void submit_hello(struct agentsh_hello_record *hello) { records.ringbuf_submit(hello, 0); }

#else

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "agentsh.h"
#define AGENTSH_PROGRAM(section) SEC(section)
char _license[] SEC("license") = "Dual MIT/GPL";
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AGENTSH_MAX_RULES);
	__type(key, struct agentsh_key);
	__type(value, struct agentsh_rule);
} rules SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AGENTSH_MAX_PREFIXES);
	__type(key, struct agentsh_prefix);
	__type(value, __u32);
} prefixes SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, AGENTSH_SIEVE_WORDS);
	__type(key, __u32);
	__type(value, __u64);
} sieve SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct agentsh_config);
} config SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, AGENTSH_COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct agentsh_maker);
} makers SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, AGENTSH_MAX_NAMES);
	__type(key, struct agentsh_name);
	__type(value, struct agentsh_rule);
} names SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct agentsh_stream);
} streams SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, AGENTSH_RING_BYTES);
} records SEC(".maps");

static __always_inline struct agentsh_rule *find_rule(struct agentsh_key *key) { return bpf_map_lookup_elem(&rules, key); }
static __always_inline __u32 *find_prefix(struct agentsh_prefix *place) { return bpf_map_lookup_elem(&prefixes, place); }
static __always_inline __u64 *find_sieve(__u32 *word) { return bpf_map_lookup_elem(&sieve, word); }
static __always_inline struct agentsh_config *find_config(__u32 *slot) { return bpf_map_lookup_elem(&config, slot); }
static __always_inline __u64 *find_counter(__u32 *slot) { return bpf_map_lookup_elem(&counters, slot); }
static __always_inline struct agentsh_maker *find_maker(struct bpf_sock *socket) { return bpf_sk_storage_get(&makers, socket, 0, 0); }
static __always_inline struct agentsh_maker *make_maker(struct bpf_sock *socket) { return bpf_sk_storage_get(&makers, socket, 0, BPF_LOCAL_STORAGE_GET_F_CREATE); }
static __always_inline struct agentsh_rule *find_name(struct agentsh_name *name) { return bpf_map_lookup_elem(&names, name); }
static __always_inline struct agentsh_stream *find_stream(struct bpf_sock *socket) { return bpf_sk_storage_get(&streams, socket, 0, 0); }
static __always_inline struct agentsh_stream *make_stream(struct bpf_sock *socket) { return bpf_sk_storage_get(&streams, socket, 0, BPF_LOCAL_STORAGE_GET_F_CREATE); }
static __always_inline struct agentsh_record *reserve_record(void) { return bpf_ringbuf_reserve(&records, sizeof(struct agentsh_record), 0); }
static __always_inline void submit_record(struct agentsh_record *record) { bpf_ringbuf_submit(record, 0); }
static __always_inline struct agentsh_hello_record *reserve_hello(void) { return bpf_ringbuf_reserve(&records, sizeof(struct agentsh_hello_record), 0); }
static __always_inline void submit_hello(struct agentsh_hello_record *hello) { bpf_ringbuf_submit(hello, 0); }

#endif

#define INLINE static inline __attribute__((always_inline))
/*
 * A global function (Linux 5.13): the verifier walks it once, by itself, and not once for each way that leads to it. BCC knows no
 * calls: there it is in line. Its pointers may be NULL, as far as the verifier knows.
 */
#ifdef AGENTSH_BCC
#define GLOBAL INLINE
#else
#define GLOBAL __attribute__((noinline))
#endif
#include "audience.h"

#define AGENTSH_AF_INET 2
#define AGENTSH_AF_INET6 10
#define AGENTSH_ETH_IP 0x0800
#define AGENTSH_LOOPBACK_V4 0x7f000001
#define AGENTSH_LOOPBACK_DEVICE 1 /* in every network namespace; everything that this host sends to itself leaves by it */
#define AGENTSH_SOCK_STREAM 1
#define AGENTSH_SOCK_DGRAM 2
#define AGENTSH_IGMP 2
#define AGENTSH_TCP 6
#define AGENTSH_UDP 17
#define AGENTSH_DCCP 33
#define AGENTSH_ICMP6 58
#define AGENTSH_SCTP 132
#define AGENTSH_UDPLITE 136
#define AGENTSH_MPTCP 262

/* Flags in a TCP header's 14th byte. */
#define AGENTSH_TCP_SYN 0x02
#define AGENTSH_TCP_RST 0x04
#define AGENTSH_TCP_URG 0x20

/* Let pass is 1, EPERM is 0: the contract of every cgroup program here. */
#define AGENTSH_PASS 1
#define AGENTSH_REFUSE 0

/* Exact, although programs are preempted by others on the same CPU, and interrupted by packets. */
INLINE void count(__u32 slot)
{
	__u64 *value = find_counter(&slot);
	if (value)
		__sync_fetch_and_add(value, 1);
}

/* The same value, of which the verifier knows nothing. */
INLINE __u64 forget(__u64 value, __u64 unknown)
{
	__u64 sum = value + unknown;

	asm volatile("" : "+r"(sum));
	return sum - unknown;
}

/*
 * Let some time pass between two refused connects on a CPU. Who makes sockets without a pause delays all others, whatever his
 * priority: the kernel frees them (RCU) in the time of who sends. No program here may sleep, so it looks at the clock.
 */
INLINE void pace(__u64 now)
{
	__u32 slot = AGENTSH_LAST;
	__u64 *last = find_counter(&slot);
	int turn, look;

	if (!last)
		return;
#pragma clang loop unroll(disable)
	for (turn = 0; turn < AGENTSH_PACE_TURNS && now - *last < AGENTSH_PACE_NS; turn++) {
#pragma unroll
		for (look = 0; look < AGENTSH_PACE_LOOKS; look++)
			now = bpf_ktime_get_ns();
	}
	*last = now;
}

/* The address as its 128-bit canonical form. 127.0.0.0/8 and 0.0.0.0 lead to this host: they are 127.0.0.1. */
INLINE void key_from_v4(struct agentsh_key *key, __u32 address)
{
	__u32 *word = (__u32 *)key->address;
	if ((address & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000) || address == 0)
		address = bpf_htonl(AGENTSH_LOOPBACK_V4);
	word[0] = 0;
	word[1] = 0;
	word[2] = bpf_htonl(0x0000ffff);
	word[3] = address;
}

/*
 * An IPv6 address that carries an IPv4 one is looked up as that IPv4 address, so that no spelling of a denied host is
 * another host: ::ffff:0:0/96, NAT64 64:ff9b::/96 (RFC 6052) and 6to4 2002::/16 (RFC 3056). :: leads to ::1.
 */
INLINE void key_from_v6(struct agentsh_key *key, __u32 a, __u32 b, __u32 c, __u32 d)
{
	__u32 *word = (__u32 *)key->address;
	if (b == 0 && ((a == bpf_htonl(0x0064ff9b) && c == 0) || (a == 0 && c == bpf_htonl(0x0000ffff)))) {
		key_from_v4(key, d);
		return;
	}
	if ((a & bpf_htonl(0xffff0000)) == bpf_htonl(0x20020000)) {
		key_from_v4(key, bpf_htonl((bpf_ntohl(a) << 16) | (bpf_ntohl(b) >> 16)));
		return;
	}
	word[0] = a;
	word[1] = b;
	word[2] = c;
	word[3] = a | b | c | d ? d : bpf_htonl(1);
}

/* Which fates the sieve leaves open for an address: AGENTSH_SIEVE_* bits. */
INLINE __u32 sifted(struct agentsh_key *key)
{
	__u32 *word = (__u32 *)key->address;
	__u64 hash = word[0] * AGENTSH_SIEVE_A + word[1] * AGENTSH_SIEVE_B + word[2] * AGENTSH_SIEVE_C + word[3] * AGENTSH_SIEVE_D;
	__u32 value = hash >> (64 - AGENTSH_SIEVE_BITS);
	__u32 slot = value >> 5;
	__u64 *bits = find_sieve(&slot);

	if (!bits) /* cannot be: the verifier wants it said */
		return AGENTSH_SIEVE_DENY | AGENTSH_SIEVE_TAG;
	return *bits >> ((value & 31) * 2) & 3;
}

/* The fate of a rule without what else its number says. */
INLINE __u32 bare(__u32 fate)
{
	return fate & AGENTSH_FATE_MASK;
}

/* What becomes of a denial. */
INLINE int refusal(struct agentsh_config *current)
{
	return current->switches & AGENTSH_ENFORCE ? AGENTSH_REFUSE : AGENTSH_PASS;
}

/*
 * Denial wins over the name's word, and that over a tag, and that over none, whichever of the two rules of an address says it. Either
 * one declares it.
 */
INLINE __u32 fate_of(struct agentsh_key *key, __u16 port)
{
	struct agentsh_rule *any, *exact;
	__u32 fate = AGENTSH_NONE, declared;

	any = find_rule(key);
	if (any)
		fate = any->fate;
	if (bare(fate) == AGENTSH_DENY)
		return fate;
	key->port = port;
	exact = find_rule(key);
	if (!exact)
		return fate;
	declared = (fate | exact->fate) & AGENTSH_DECLARED;
	if (bare(exact->fate) && (bare(exact->fate) != AGENTSH_TAG || bare(fate) < AGENTSH_SNI))
		fate = exact->fate;
	return fate | declared;
}

INLINE void describe(struct agentsh_record *record, struct agentsh_config *current, struct agentsh_key *key, __u16 port)
{
	record->time_ns = bpf_ktime_get_boot_ns();
	record->generation = current->generation;
	__builtin_memcpy(record->address, key->address, sizeof(record->address));
	record->port = port;
	record->flags = current->switches & AGENTSH_ENFORCE ? 0 : AGENTSH_OBSERVED;
}

/* A record with what every hook knows; NULL where the ring is full, which is counted. */
INLINE struct agentsh_record *begin_record(struct agentsh_config *current, struct agentsh_key *key, __u16 port)
{
	struct agentsh_record *record = reserve_record();

	if (!record) {
		count(AGENTSH_LOST);
		return record;
	}
	describe(record, current, key, port);
	return record;
}

/* Whose socket it is, for what is told later of its packets. NULL: there was no memory for that. */
INLINE void remember(struct agentsh_maker *maker)
{
	__u64 ids = bpf_get_current_pid_tgid();

	if (!maker)
		return;
	maker->pid = ids >> 32;
	maker->tid = (__u32)ids;
	bpf_get_current_comm(maker->comm, sizeof(maker->comm));
}

/* A stream at its beginning, of which nothing is left that the same socket said before. */
INLINE struct agentsh_stream *new_stream(struct bpf_sock *socket)
{
	struct agentsh_stream *stream = make_stream(socket);

	if (stream)
		__builtin_memset(stream, 0, sizeof(*stream));
	return stream;
}

/* Egress knows whose the socket is, and not who uses it: a stream that is there already concerns it in either case. */
INLINE int expect_hello(struct bpf_sock_addr *ctx, __u32 fate)
{
	struct agentsh_audience who = {};
	struct agentsh_config *current;
	__u32 slot = 0;

	if (ctx->sk)
		remember(make_maker(ctx->sk));
	current = find_config(&slot);
	if (!current)
		return AGENTSH_REFUSE;
	if (!(current->switches & AGENTSH_SESSIONS_ONLY))
		return AGENTSH_PASS;
	audience_of_task(&who, current);
	if (!concerns(&who, current, fate))
		return AGENTSH_PASS;
	if (ctx->sk && new_stream(ctx->sk))
		return AGENTSH_PASS;
	count(AGENTSH_DENIED); /* no memory is left for it: nobody could be told more */
	count(AGENTSH_LOST);
	return refusal(current);
}

#include "undeclared.h"

/* Of an address for which the sieve leaves something open. */
GLOBAL int judge(struct bpf_sock_addr *ctx, struct agentsh_key *asked, __u8 family, __u8 hook)
{
	struct agentsh_key own, *key = &own; /* before 6.2 the verifier wants a key here, or in a map */
	struct agentsh_audience who = {};
	struct agentsh_config *current;
	struct agentsh_record *record;
	__u16 port = (__u16)ctx->user_port;
	__u32 fate, told, slot = 0;
	__u64 ids, now;

	if (!asked)
		return AGENTSH_REFUSE;
	own = *asked;
	fate = fate_of(key, port);
	current = find_config(&slot);
	if (!current)
		return AGENTSH_REFUSE;
	who.session = strays(key, port, fate, current);
	if (who.session)
		fate = AGENTSH_UNDECLARED;
	if (bare(fate) == AGENTSH_NONE)
		return AGENTSH_PASS;
	if (bare(fate) == AGENTSH_SNI || bare(fate) == AGENTSH_SNI_OPEN) {
		/* TCP shows the name in its first bytes, which egress reads. Whatever else there is (QUIC, MPTCP) does not. */
		if (ctx->protocol == AGENTSH_TCP)
			return expect_hello(ctx, fate);
		fate = (fate & ~AGENTSH_FATE_MASK) | (bare(fate) == AGENTSH_SNI ? AGENTSH_DENY : AGENTSH_TAG);
	}
	if (fate != AGENTSH_UNDECLARED) {
		audience_of_task(&who, current);
		if (!concerns(&who, current, fate))
			return AGENTSH_PASS;
	}
	fate = bare(fate);
	told = fate == AGENTSH_TAG || (fate == AGENTSH_UNDECLARED && !(current->switches & AGENTSH_EGRESS_REFUSE));
	count(told ? AGENTSH_TAGGED : AGENTSH_DENIED);
	record = begin_record(current, key, port);
	if (record) {
		ids = bpf_get_current_pid_tgid();
		record->cgroup_id = bpf_get_current_cgroup_id();
		record->netns_cookie = bpf_get_netns_cookie(ctx);
		record->socket_cookie = bpf_get_socket_cookie(ctx);
		record->pid = ids >> 32;
		record->tid = (__u32)ids;
		record->uid = (__u32)bpf_get_current_uid_gid();
		record->protocol = ctx->protocol;
		record->family = family;
		record->fate = fate;
		record->hook = hook;
		record->session = who.session;
		if (fate == AGENTSH_UNDECLARED && told)
			record->flags = AGENTSH_OBSERVED;
		bpf_get_current_comm(record->comm, sizeof(record->comm));
		submit_record(record);
	}
	now = bpf_ktime_get_ns();
	told = forget(told, now); /* or the verifier walks the loop of `pace` once for each way here */
	if (told || !(current->switches & AGENTSH_ENFORCE))
		return AGENTSH_PASS;
	pace(now);
	return AGENTSH_REFUSE;
}

INLINE int judge_v4(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct agentsh_key key = {};

	key_from_v4(&key, ctx->user_ip4);
	return sifted(&key) && !judge(ctx, &key, AGENTSH_AF_INET, hook) ? AGENTSH_REFUSE : AGENTSH_PASS;
}

INLINE int judge_v6(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct agentsh_key key = {};

	key_from_v6(&key, ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]);
	return sifted(&key) && !judge(ctx, &key, AGENTSH_AF_INET6, hook) ? AGENTSH_REFUSE : AGENTSH_PASS;
}

/* Where a packet's transport header is and whose; offset 0: it has none, as a later fragment. */
struct agentsh_transport {
	__u32 offset;
	__u32 protocol;
};

/* A packet under a rule. No fate: under none, or it is only tagged, which is done where it connects. */
struct agentsh_packet {
	struct agentsh_key key;
	struct agentsh_transport where;
	__u64 session;
	__u32 fate;
	struct agentsh_maker maker;
};

INLINE void find_transport_v4(struct __sk_buff *skb, struct agentsh_transport *found)
{
	__u8 head[10] = {};

	bpf_skb_load_bytes(skb, 0, head, sizeof(head));
	found->protocol = head[9];
	if (!(head[6] & 0x1f) && !head[7])
		found->offset = (head[0] & 0xf) * 4;
}

/* RFC 8200: each kind of extension header at most once, destination options twice. */
#define AGENTSH_MAX_EXTENSIONS 6

/* hop-by-hop, routing, fragment, authentication, destination options */
INLINE int is_extension(__u8 kind)
{
	return kind == 0 || kind == 43 || kind == 44 || kind == 51 || kind == 60;
}

INLINE void find_transport_v6(struct __sk_buff *skb, struct agentsh_transport *found)
{
	__u8 head[4], kind = 0;
	__u32 offset = 40;
	int i;

	bpf_skb_load_bytes(skb, 6, &kind, 1);
#pragma unroll
	for (i = 0; i < AGENTSH_MAX_EXTENSIONS; i++) {
		if (!is_extension(kind) || bpf_skb_load_bytes(skb, offset, head, sizeof(head)))
			break;
		if (kind == 44 && (head[2] || head[3] >> 3)) {
			found->protocol = head[0];
			return;
		}
		offset += kind == 44 ? 8 : kind == 51 ? (head[1] + 2) * 4 : (head[1] + 1) * 8;
		kind = head[0];
	}
	found->protocol = kind;
	found->offset = offset;
}

/*
 * TCP, UDP, DCCP, SCTP and UDP-Lite begin with the ports. Say whether there is one that cannot be read: behind more extension
 * headers than there are kinds, or behind the end of a first fragment (RFC 7112 forbids it, receivers put it together).
 */
INLINE int hides_port(struct __sk_buff *skb, struct agentsh_transport *where, __u16 *port)
{
	__u8 kind = where->protocol;

	if (!where->offset)
		return 0;
	if (kind == AGENTSH_TCP || kind == AGENTSH_UDP || kind == AGENTSH_DCCP || kind == AGENTSH_SCTP || kind == AGENTSH_UDPLITE)
		return bpf_skb_load_bytes(skb, where->offset + 2, port, sizeof(*port)) != 0;
	return skb->protocol != bpf_htons(AGENTSH_ETH_IP) && is_extension(kind);
}

/* A bare reset is what is left of a connection that is closed already, by a sweep for one: stopped, but no news. */
INLINE int is_bare_reset(struct __sk_buff *skb, struct agentsh_transport *where)
{
	__u8 head[2] = {};

	if (where->protocol != AGENTSH_TCP || !where->offset || bpf_skb_load_bytes(skb, where->offset + 12, head, sizeof(head)))
		return 0;
	return (head[1] & AGENTSH_TCP_RST) && skb->len == where->offset + (head[0] >> 4) * 4;
}

/* A stream's socket: what comes out of any other kind of socket as TCP is in no order that could be followed. */
INLINE struct bpf_sock *stream_socket(struct __sk_buff *skb)
{
	struct bpf_sock *socket = skb->sk;

	if (!socket)
		return 0;
	socket = bpf_sk_fullsock(socket);
	if (!socket || socket->type != AGENTSH_SOCK_STREAM || socket->protocol != AGENTSH_TCP)
		return 0;
	return socket;
}

/* A packet may leave long after it was sent, in anybody's time: who made the socket is what can be known of its process. */
INLINE void find_out_maker(struct __sk_buff *skb, struct agentsh_maker *found)
{
	struct bpf_sock *socket = skb->sk;
	struct agentsh_maker *maker;

	if (!socket)
		return;
	socket = bpf_sk_fullsock(socket);
	if (!socket)
		return;
	maker = find_maker(socket);
	if (maker)
		*found = *maker;
}

INLINE void describe_packet(struct agentsh_record *record, struct __sk_buff *skb, struct agentsh_packet *packet)
{
	record->cgroup_id = bpf_skb_cgroup_id(skb);
	record->netns_cookie = 0;
	record->socket_cookie = bpf_get_socket_cookie(skb);
	record->pid = packet->maker.pid;
	record->tid = packet->maker.tid;
	record->uid = bpf_get_socket_uid(skb);
	record->protocol = (__u8)packet->where.protocol;
	record->family = skb->protocol == bpf_htons(AGENTSH_ETH_IP) ? AGENTSH_AF_INET : AGENTSH_AF_INET6;
	record->fate = packet->fate == AGENTSH_UNDECLARED ? AGENTSH_UNDECLARED : AGENTSH_DENY;
	record->hook = AGENTSH_EGRESS;
	record->session = packet->session;
	__builtin_memcpy(record->comm, packet->maker.comm, sizeof(record->comm));
}

INLINE void record_packet(struct __sk_buff *skb, struct agentsh_config *current, struct agentsh_packet *packet)
{
	struct agentsh_record *record = begin_record(current, &packet->key, packet->key.port);

	if (!record)
		return;
	describe_packet(record, skb, packet);
	submit_record(record);
}

#include "undeclared_packet.h"
#include "hello.h"
#include "retry.h"
#include "stream.h"

/*
 * Which rule a packet falls under, told in `found`; denial wins over all that was found before. What falls under none that counts
 * here may be undeclared: whether it is, is_concerned says.
 */
INLINE void look_up_packet(struct __sk_buff *skb, struct agentsh_key *key, int v4, struct agentsh_packet *found)
{
	struct agentsh_transport where = {};
	__u32 fate, bits = sifted(key);
	__u16 port = 0;

	if (!(bits & AGENTSH_SIEVE_DENY)) {
		if (bits && !found->fate)
			found->fate = AGENTSH_UNDECLARED;
		return;
	}
	if (v4)
		find_transport_v4(skb, &where);
	else
		find_transport_v6(skb, &where);
	fate = hides_port(skb, &where, &port) ? AGENTSH_DENY : fate_of(key, port);
	if (bare(fate) == AGENTSH_NONE || bare(fate) == AGENTSH_TAG) {
		if (!found->fate)
			found->fate = AGENTSH_UNDECLARED;
		return;
	}
	if (bare(found->fate) == AGENTSH_DENY || (found->fate && found->fate != AGENTSH_UNDECLARED && bare(fate) != AGENTSH_DENY))
		return;
	found->fate = fate;
	found->where = where;
	__builtin_memcpy(&found->key, key, sizeof(found->key));
	found->key.port = port;
}

INLINE int refuse_packet(struct __sk_buff *skb, struct agentsh_packet *packet)
{
	struct agentsh_config *current;
	__u32 slot = 0;

	current = find_config(&slot);
	if (!current)
		return AGENTSH_REFUSE;
	if (!is_bare_reset(skb, &packet->where)) {
		count(AGENTSH_DENIED);
		record_packet(skb, current, packet);
	}
	return refusal(current);
}

/* To this host by whichever of its addresses: what is denied at its loopback is denied there too. */
INLINE void look_up_here(struct __sk_buff *skb, int v4, struct agentsh_packet *found)
{
	struct agentsh_key key = {};

	if (skb->ifindex != AGENTSH_LOOPBACK_DEVICE)
		return;
	if (v4)
		key_from_v4(&key, bpf_htonl(AGENTSH_LOOPBACK_V4));
	else
		key_from_v6(&key, 0, 0, 0, bpf_htonl(1));
	look_up_packet(skb, &key, v4, found);
}

/*
 * Every packet of every socket, after routing and address translation. The kernel's word on the version counts
 * (skb->protocol), not the packet's first byte, which a raw socket may fill with anything.
 */
INLINE int judge_egress(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct agentsh_packet packet = {};
	struct agentsh_key key = {};
	__u32 word[4] = {};

	if (skb->protocol == bpf_htons(AGENTSH_ETH_IP)) {
		if (data + 20 <= end)
			word[0] = *(__u32 *)(data + 16);
		else
			bpf_skb_load_bytes(skb, 16, word, 4);
		key_from_v4(&key, word[0]);
		look_up_packet(skb, &key, 1, &packet);
		look_up_here(skb, 1, &packet);
	} else {
		if (data + 40 <= end)
			__builtin_memcpy(word, data + 24, sizeof(word));
		else
			bpf_skb_load_bytes(skb, 24, word, sizeof(word));
		key_from_v6(&key, word[0], word[1], word[2], word[3]);
		look_up_packet(skb, &key, 0, &packet);
		look_up_here(skb, 0, &packet);
	}
	if (!packet.fate || !is_concerned(skb, &packet))
		return AGENTSH_PASS;
	find_out_maker(skb, &packet.maker);
	forget_packet(skb, &packet);
	if (packet.fate == AGENTSH_DENY || packet.fate == AGENTSH_UNDECLARED)
		return refuse_packet(skb, &packet);
	return judge_stream(skb, &packet) ? AGENTSH_PASS : AGENTSH_REFUSE;
}

/* Only of sockets that no connect hook sees is the maker kept: the others' process is known when they connect. */
INLINE int remember_maker(struct bpf_sock *socket)
{
	if (socket->type == AGENTSH_SOCK_STREAM && (socket->protocol == AGENTSH_TCP || socket->protocol == AGENTSH_MPTCP))
		return AGENTSH_PASS;
	if (socket->type == AGENTSH_SOCK_DGRAM && socket->protocol == AGENTSH_UDP)
		return AGENTSH_PASS;
	remember(make_maker(socket));
	return AGENTSH_PASS;
}

/* Names fit the kernel's 15 characters and start with agentsh_: a restart finds its predecessors by them. */
AGENTSH_PROGRAM("cgroup/connect4") int agentsh_conn4(struct bpf_sock_addr *ctx) { return judge_v4(ctx, AGENTSH_CONNECT4); }
AGENTSH_PROGRAM("cgroup/connect6") int agentsh_conn6(struct bpf_sock_addr *ctx) { return judge_v6(ctx, AGENTSH_CONNECT6); }
AGENTSH_PROGRAM("cgroup/sendmsg4") int agentsh_send4(struct bpf_sock_addr *ctx) { return judge_v4(ctx, AGENTSH_SENDMSG4); }
AGENTSH_PROGRAM("cgroup/sendmsg6") int agentsh_send6(struct bpf_sock_addr *ctx) { return judge_v6(ctx, AGENTSH_SENDMSG6); }
AGENTSH_PROGRAM("cgroup_skb/egress") int agentsh_egress(struct __sk_buff *skb) { return judge_egress(skb); }
AGENTSH_PROGRAM("cgroup/sock_create") int agentsh_make(struct bpf_sock *socket) { return remember_maker(socket); }
