// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Refuses (EPERM) or records connects and datagrams to the endpoints in `rules`. Attached at the cgroup v2 root.
 * The verdict depends on the maps alone: a full ring costs a record, which is counted, and never a verdict.
 * Compiled by BCC, or by clang for libbpf: only the block below and the accessors differ.
 */
#ifdef AGENTSH_BCC

#define BPF_LICENSE Dual MIT/GPL
#include "agentsh.h"
#define AGENTSH_PROGRAM(section)
BPF_F_TABLE("hash", struct agentsh_key, struct agentsh_rule, rules, AGENTSH_MAX_RULES, BPF_F_NO_PREALLOC);
BPF_TABLE("array", __u32, struct agentsh_config, config, 1);
BPF_TABLE("percpu_array", __u32, __u64, counters, AGENTSH_COUNTERS);
BPF_RINGBUF_OUTPUT(records, AGENTSH_RING_BYTES / 4096);

static inline struct agentsh_rule *find_rule(struct agentsh_key *key) { return rules.lookup(key); }
static inline struct agentsh_config *find_config(__u32 *slot) { return config.lookup(slot); }
static inline __u64 *find_counter(__u32 *slot) { return counters.lookup(slot); }
static inline struct agentsh_record *reserve_record(void) { return records.ringbuf_reserve(sizeof(struct agentsh_record)); }
static inline void submit_record(struct agentsh_record *record) { records.ringbuf_submit(record, 0); }

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
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, AGENTSH_RING_BYTES);
} records SEC(".maps");

static __always_inline struct agentsh_rule *find_rule(struct agentsh_key *key) { return bpf_map_lookup_elem(&rules, key); }
static __always_inline struct agentsh_config *find_config(__u32 *slot) { return bpf_map_lookup_elem(&config, slot); }
static __always_inline __u64 *find_counter(__u32 *slot) { return bpf_map_lookup_elem(&counters, slot); }
static __always_inline struct agentsh_record *reserve_record(void) { return bpf_ringbuf_reserve(&records, sizeof(struct agentsh_record), 0); }
static __always_inline void submit_record(struct agentsh_record *record) { bpf_ringbuf_submit(record, 0); }

#endif

#define AGENTSH_AF_INET 2
#define AGENTSH_AF_INET6 10

/* Let pass is 1, EPERM is 0: the contract of every cgroup/sock_addr program. */
#define AGENTSH_PASS 1
#define AGENTSH_REFUSE 0

static inline __attribute__((always_inline)) void count(__u32 slot)
{
	__u64 *value = find_counter(&slot);
	if (value)
		*value += 1;
}

/* The address as its 128-bit canonical form. */
static inline __attribute__((always_inline)) void key_from_v4(struct agentsh_key *key, __u32 address)
{
	__u32 *word = (__u32 *)key->address;
	word[0] = 0;
	word[1] = 0;
	word[2] = bpf_htonl(0x0000ffff);
	word[3] = address;
}

/*
 * An IPv6 address that carries an IPv4 one is looked up as that IPv4 address, so that no spelling of a denied host is
 * another host: ::ffff:0:0/96 already has the canonical form, NAT64 64:ff9b::/96 (RFC 6052) and 6to4 2002::/16 (RFC 3056)
 * are brought to it.
 */
static inline __attribute__((always_inline)) void key_from_v6(struct agentsh_key *key, __u32 a, __u32 b, __u32 c, __u32 d)
{
	__u32 *word = (__u32 *)key->address;
	if (a == bpf_htonl(0x0064ff9b) && b == 0 && c == 0) {
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
	word[3] = d;
}

/* Denial wins over a tag, whichever of the two rules of an address says it. */
static inline __attribute__((always_inline)) __u32 fate_of(struct agentsh_key *key, __u16 port)
{
	struct agentsh_rule *any, *exact;
	__u32 fate = AGENTSH_NONE;

	any = find_rule(key);
	if (any)
		fate = any->fate;
	if (fate == AGENTSH_DENY)
		return fate;
	key->port = port;
	exact = find_rule(key);
	if (exact)
		fate = exact->fate;
	return fate;
}

static inline __attribute__((always_inline)) int judge(struct bpf_sock_addr *ctx, struct agentsh_key *key, __u8 family, __u8 hook)
{
	struct agentsh_config *current;
	struct agentsh_record *record;
	__u16 port = (__u16)ctx->user_port;
	__u32 generation = 0, enforce = 1, slot = 0;
	__u32 fate = fate_of(key, port);
	__u64 ids;

	if (fate == AGENTSH_NONE)
		return AGENTSH_PASS;
	current = find_config(&slot);
	if (current) {
		generation = current->generation;
		enforce = current->enforce;
	}
	count(fate == AGENTSH_DENY ? AGENTSH_DENIED : AGENTSH_TAGGED);
	record = reserve_record();
	if (record) {
		ids = bpf_get_current_pid_tgid();
		record->time_ns = bpf_ktime_get_boot_ns();
		record->cgroup_id = bpf_get_current_cgroup_id();
		record->netns_cookie = bpf_get_netns_cookie(ctx);
		record->socket_cookie = bpf_get_socket_cookie(ctx);
		record->pid = ids >> 32;
		record->tid = (__u32)ids;
		record->uid = (__u32)bpf_get_current_uid_gid();
		record->generation = generation;
		__builtin_memcpy(record->address, key->address, sizeof(record->address));
		record->port = port;
		record->protocol = ctx->protocol;
		record->family = family;
		record->fate = fate;
		record->hook = hook;
		record->flags = enforce ? 0 : AGENTSH_OBSERVED;
		bpf_get_current_comm(record->comm, sizeof(record->comm));
		submit_record(record);
	} else {
		count(AGENTSH_LOST);
	}
	return fate == AGENTSH_DENY && enforce ? AGENTSH_REFUSE : AGENTSH_PASS;
}

static inline __attribute__((always_inline)) int judge_v4(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct agentsh_key key = {};

	key_from_v4(&key, ctx->user_ip4);
	return judge(ctx, &key, AGENTSH_AF_INET, hook);
}

static inline __attribute__((always_inline)) int judge_v6(struct bpf_sock_addr *ctx, __u8 hook)
{
	struct agentsh_key key = {};

	key_from_v6(&key, ctx->user_ip6[0], ctx->user_ip6[1], ctx->user_ip6[2], ctx->user_ip6[3]);
	return judge(ctx, &key, AGENTSH_AF_INET6, hook);
}

/* Names fit the kernel's 15 characters and start with agentsh_: a restart finds its predecessors by them. */
AGENTSH_PROGRAM("cgroup/connect4") int agentsh_conn4(struct bpf_sock_addr *ctx) { return judge_v4(ctx, AGENTSH_CONNECT4); }
AGENTSH_PROGRAM("cgroup/connect6") int agentsh_conn6(struct bpf_sock_addr *ctx) { return judge_v6(ctx, AGENTSH_CONNECT6); }
AGENTSH_PROGRAM("cgroup/sendmsg4") int agentsh_send4(struct bpf_sock_addr *ctx) { return judge_v4(ctx, AGENTSH_SENDMSG4); }
AGENTSH_PROGRAM("cgroup/sendmsg6") int agentsh_send6(struct bpf_sock_addr *ctx) { return judge_v6(ctx, AGENTSH_SENDMSG6); }
