/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that lies to observers (hostile_maps.sh):
 *
 *	hostile_maps DEVICE SEED [PID...]
 *
 * Opens the device, makes a few objects of each kind, and then rewrites all maps of its descriptors
 * until it is killed: mapped memory, elements by system calls, positions of ring buffers, its words
 * for tracers. The words are zeros, ones, invalid values of an enum, its own and the other PIDs, or
 * random; elements are rows with one such word, or only such words. Its name changes as well. With
 * the privilege it also makes maps with our maps' names and other shapes.
 *
 * Once all maps have been rewritten, prints a line for each, with its name and mapped, updated,
 * ring or refused; then a line `rewriting`. With seed 0 it changes nothing, prints `honest`, and
 * stays.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <xroce/stat.h>
#include <xroce/trace.h>

#include "lib/ctl.h"
#include "lib/device.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define MAPS	  96
#define TELLERS	  8
#define PIDS	  8
#define VALUE_MAX (1u << 20)
#define ROUND_NS  5000000
/* Bytes of a map per round: the readers need the processors too, and rounds are many. */
#define ROUND_BYTES 65536

struct map {
	struct bpf_map_info info;
	int fd;
	u8 *mapped;	     /* NULL: updated by system calls */
	size_t bytes, value; /* of the mapping; from one element to the next */
	bool is_ring, is_refused;
};

static struct map maps[MAPS];
static u32 num_maps;
static int teller[TELLERS];
static u32 num_tellers;
static u32 pids[PIDS], num_pids;
static u64 state;
static u8 key[4096], value[VALUE_MAX];

static u64 draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* The library closes a client's descriptors of maps: not here with KEEP_MAPS set. */
static bool keeps_maps = true;

__attribute__((visibility("default"))) int close(int fd)
{
	char path[32], to[64] = { 0 };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (keeps_maps && getenv("KEEP_MAPS") && readlink(path, to, sizeof(to) - 1) > 0 &&
	    strstr(to, "bpf-map"))
		return 0;
	return (int)syscall(SYS_close, fd);
}

/* ---- the written words ---- */

static u32 word(void)
{
	static const u32 edge[] = { 0,	      1,	  2,	      3,
				    6,	      7,	  40,	      64,
				    0xff,     0xffff,	  0x7fffffff, 0x80000000,
				    1u << 24, 0xfffffffe, 0xffffffff, 0xffffffff };
	const u64 d = draw();

	switch (d & 7) {
	case 0:
		return (u32)(d >> 32);
	case 1:
		return (u32)(d >> 32) % 40;
	case 2:
		return pids[(d >> 32) % num_pids];
	default:
		return edge[(d >> 32) % (sizeof(edge) / sizeof(edge[0]))];
	}
}

enum style { STYLE_WORDS, STYLE_RANDOM, STYLE_ONES, STYLE_ZEROS, STYLE_ROWS, STYLE_SMALL, STYLES };

static void words_write(u8 *to, size_t bytes, enum style style)
{
	for (size_t at = 0; at + 4 <= bytes; at += 4) {
		u32 w = 0;

		switch (style) {
		case STYLE_WORDS:
		case STYLE_ROWS:
			w = word();
			break;
		case STYLE_RANDOM:
			w = (u32)(draw() >> 32);
			break;
		case STYLE_ONES:
			w = ~0u;
			break;
		case STYLE_SMALL:
			w = (u32)(draw() >> 32) % 24;
			break;
		default:
			break;
		}
		memcpy(to + at, &w, 4);
	}
}

/* Writes a row that a reader accepts, except for one word. */
static void row_write(const char *name, u8 *to, size_t bytes)
{
	const u32 pid = pids[draw() % num_pids];
	u8 row[512] = { 0 };
	size_t len;
	u32 w;

	if (!strcmp(name, XROCE_MAP_QP_STAT)) {
		const struct xroce_qp_stat s = { .qpn = (u32)draw() & 0xffffff,
						 .pid = pid,
						 .transport = (u32)draw() % 6,
						 .state = (u32)draw() % 8,
						 .path_mtu = 1024,
						 .tx_packets = draw(),
						 .rx_packets = draw() >> 40,
						 .rtt_ns = (u32)draw(),
						 .error = (u32)draw() % 25,
						 .error_reason = (u32)draw() % 70,
						 .last_drop = (u32)draw() % 64,
						 .error_ns = draw() };

		memcpy(row, &s, len = sizeof(s));
	} else if (!strcmp(name, XROCE_MAP_CQ_STAT)) {
		const struct xroce_cq_stat s = { .pid = pid,
						 .cq = (u32)draw(),
						 .entries = (u32)draw(),
						 .waiting = (u32)draw(),
						 .completions = draw() };

		memcpy(row, &s, len = sizeof(s));
	} else if (!strcmp(name, XROCE_MAP_SRQ_STAT)) {
		const struct xroce_srq_stat s = { .pid = pid, .srq = (u32)draw(), .taken = draw() };

		memcpy(row, &s, len = sizeof(s));
	} else if (!strcmp(name, XROCE_MAP_MR_STAT)) {
		const struct xroce_mr_stat s = { .pid = pid,
						 .key = (u32)draw(),
						 .addr = draw(),
						 .length = draw(),
						 .access = (u32)draw(),
						 .kind = (u32)draw() % 5 };

		memcpy(row, &s, len = sizeof(s));
	} else if (!strcmp(name, XROCE_MAP_QP)) {
		const struct xroce_qp s = { .qpn = (u32)draw(),
					    .transport = (u32)draw() % 6,
					    .pid = pid };

		memcpy(row, &s, len = sizeof(s));
	} else if (!strcmp(name, XROCE_MAP_TRACE)) {
		struct xroce_trace t = { .listening = ~0u };

		for (u32 i = 0; i < XROCE_TRACERS; i++)
			t.tracer[i] = (struct xroce_tracer){ .until_ns = draw() | 1ull << 62,
							     .owner = pid,
							     .what = ~0u,
							     .bytes = word(),
							     .recorded = draw(),
							     .lost = draw() };
		memcpy(row, &t, len = sizeof(t));
	} else {
		words_write(to, bytes, STYLE_WORDS);
		return;
	}
	w = word();
	if (draw() & 1)
		memcpy(row + draw() % (len / 4) * 4, &w, 4);
	memcpy(to, row, len < bytes ? len : bytes);
}

static void value_write(const struct map *m, u8 *to, size_t bytes, enum style style)
{
	if (style == STYLE_ROWS)
		row_write(m->info.name, to, bytes);
	else
		words_write(to, bytes, style);
}

/* ---- ways to write a map ---- */

static void map_rewrite_mapping(struct map *m)
{
	const enum style style = (enum style)(draw() % STYLES);
	/* sometimes all of it, else every few elements, so that others stay a while */
	const u32 step = draw() % 8 ? 1 + (u32)(draw() % 7) : 1;

	size_t at = 0, end = m->bytes;

	/* the first bytes that a reader reads, or any */
	if (m->bytes > ROUND_BYTES) {
		at = draw() & 1 ? draw() % (m->bytes / m->value) * m->value : 0;
		end = at + ROUND_BYTES < m->bytes ? at + ROUND_BYTES : m->bytes;
	}
	for (; at + m->value <= end; at += m->value * step)
		value_write(m, m->mapped + at, m->value, style);
}

/* Rewrites the positions of the ring that its reader writes. */
static void map_rewrite_ring(struct map *m)
{
	const u64 at = draw();

	memcpy(m->mapped, &at, sizeof(at));
}

static void map_update(struct map *m)
{
	const long cpus = sysconf(_SC_NPROCESSORS_CONF);
	const bool is_per_cpu = m->info.type == BPF_MAP_TYPE_PERCPU_ARRAY ||
				m->info.type == BPF_MAP_TYPE_PERCPU_HASH ||
				m->info.type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	const bool is_of_maps = m->info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS ||
				m->info.type == BPF_MAP_TYPE_HASH_OF_MAPS;
	const enum style style = (enum style)(draw() % STYLES);
	const size_t each = (m->info.value_size + 7) / 8 * 8;
	const u32 most = 1 + ROUND_BYTES / (m->info.value_size + 1), times = most < 24 ? most : 24;
	bool is_done = false;

	for (u32 i = 0; i < times; i++) {
		union bpf_attr attr = { .map_fd = (u32)m->fd,
					.key = (uintptr_t)key,
					.value = (uintptr_t)value };
		u32 number = (u32)draw();

		words_write(key, m->info.key_size, STYLE_RANDOM);
		if (m->info.key_size == 4) {
			number = m->info.max_entries ? number % m->info.max_entries : 0;
			/* keys with the 24 bits of a QPN */
			number = is_of_maps || draw() & 1 ? number : (u32)draw() & 0xffffff;
			memcpy(key, &number, 4);
		}
		if (is_of_maps) {
			const u32 fd = (u32)maps[draw() % num_maps].fd;

			memcpy(value, &fd, 4);
		} else {
			const size_t len = is_per_cpu ? each : m->info.value_size;

			for (long c = 0; c < (is_per_cpu ? cpus : 1); c++)
				value_write(m, value + (size_t)c * each, len, style);
		}
		is_done |= !bpf(BPF_MAP_UPDATE_ELEM, &attr);
		/* the first key of a hash, so that it does not fill up */
		attr = (union bpf_attr){ .map_fd = (u32)m->fd, .next_key = (uintptr_t)key };
		if (!is_of_maps && draw() % 8 && !bpf(BPF_MAP_GET_NEXT_KEY, &attr)) {
			attr = (union bpf_attr){ .map_fd = (u32)m->fd, .key = (uintptr_t)key };
			bpf(BPF_MAP_DELETE_ELEM, &attr);
		}
	}
	m->is_refused &= !is_done;
}

/* Sends records: struct xroce_trace_record, and records of other shapes. */
static void tell(void)
{
	static struct xroce_trace_report report;
	const u32 whole = draw() & 1 ? (u32)(draw() % 4) : word();
	size_t at = 0;

	if (!num_tellers)
		return;
	words_write((u8 *)&report, sizeof(report), (enum style)(draw() % STYLES));
	report.record = (struct xroce_trace_record){
		.packets = whole,
		.events = draw() & 1 ? whole : word(),
		.lost_packets = word(),
		.lost_events = word(),
		.bytes = draw() & 3 ? (u32)(draw() % sizeof(report.entries)) : word()
	};
	while (at + sizeof(struct xroce_trace_entry) + 256 < sizeof(report.entries)) {
		const struct xroce_trace_entry t = { .qpn = word(),
						     .peer_qpn = word(),
						     .size = draw() & 1 ? (u16)(draw() % 256) :
									  (u16)draw(),
						     .kind = (u8)(draw() % 9),
						     .event = (u8)(draw() % 32),
						     .value = word(),
						     .more = word() };

		memcpy(report.entries + at, &t, sizeof(t));
		at += sizeof(t) + (draw() & 3 ? (t.size + 7u) / 8 * 8 : 8 * (draw() % 4));
	}
	for (u32 i = 0; i < num_tellers; i++) {
		union bpf_attr attr = { .test = { .prog_fd = (u32)teller[i],
						  .ctx_in = (uintptr_t)&report,
						  .ctx_size_in = sizeof(report) } };

		bpf(BPF_PROG_RUN, &attr);
	}
}

static void name_change(void)
{
	static const char *const name[] = {
		"\033[35;5mred",
		"\033]0;pwn\007",
		"a\nva 1 root",
		"tab\there\r",
		"\"q\\u{},:[",
		"\xff\xfe\x80x",
		"\xe2\x80\xae"
		"evil",
		"\x9b"
		"35m",
		"\xc2\x9b"
		"35m",
		"%s%n%n%500d",
		"$(id)`id`",
		") S 1 1 1 (",
		"",
		" ",
		"123456789012345",
		"\xe2\x82",
		"\x7f\b\b\b",
		"\xf0\x9f\x98\x80",
		"\xed\xa0\x80",
		"ibv_rc_pingpong",
	};

	prctl(PR_SET_NAME, name[draw() % (sizeof(name) / sizeof(name[0]))]);
}

/* ---- the maps ---- */

static void map_take(int fd)
{
	struct map *m = &maps[num_maps];
	union bpf_attr attr = { .info = { .bpf_fd = (u32)fd,
					  .info_len = sizeof(m->info),
					  .info = (uintptr_t)&m->info } };

	memset(&m->info, 0, sizeof(m->info));
	if (num_maps == MAPS || bpf(BPF_OBJ_GET_INFO_BY_FD, &attr))
		return;
	m->fd = fd;
	m->is_refused = true;
	m->value = (m->info.value_size + 7) / 8 * 8;
	m->bytes = m->value * m->info.max_entries;
	m->mapped = NULL;
	if (m->info.type == BPF_MAP_TYPE_RINGBUF) {
		m->is_ring = true;
		m->mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else if (m->info.map_flags & BPF_F_MMAPABLE) {
		m->mapped = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	}
	if (m->mapped == MAP_FAILED)
		m->mapped = NULL;
	if (m->info.value_size <= VALUE_MAX / 256 && m->info.key_size <= sizeof(key))
		num_maps++;
}

static void program_take(int fd)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = (u32)fd, .info_len = sizeof(info), .info = (uintptr_t)&info }
	};

	if (num_tellers < TELLERS && !bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) &&
	    !strncmp(info.name, "xroce_trace_tx", 15))
		teller[num_tellers++] = fd;
}

static void descriptors_take(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;

	must(dir, "/proc/self/fd: %s", strerror(errno));
	while ((d = readdir(dir))) {
		char path[64], to[64] = { 0 };

		snprintf(path, sizeof(path), "/proc/self/fd/%.16s", d->d_name);
		if (readlink(path, to, sizeof(to) - 1) < 0)
			continue;
		if (strstr(to, "bpf-map"))
			map_take(atoi(d->d_name));
		else if (strstr(to, "bpf-prog"))
			program_take(atoi(d->d_name));
	}
	closedir(dir);
}

/* Makes maps that only share a name with ours. Refused without the privilege. */
static void impostors_make(void)
{
	static const char *const name[] = { XROCE_MAP_ENGINE,  XROCE_MAP_QP_STAT,
					    XROCE_MAP_CQ_STAT, XROCE_MAP_SRQ_STAT,
					    XROCE_MAP_MR_STAT, XROCE_MAP_QP,
					    XROCE_MAP_TRACE,   XROCE_MAP_TRACER,
					    XROCE_MAP_RX };
	static const struct {
		u32 type, key_size, value_size, entries, flags;
	} shape[] = {
		{ BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE },
		{ BPF_MAP_TYPE_ARRAY, 4, 4096, 1, BPF_F_MMAPABLE },
		{ BPF_MAP_TYPE_ARRAY, 4, 65536, 3, 0 },
		{ BPF_MAP_TYPE_ARRAY, 4, 64, 100000, BPF_F_MMAPABLE },
		{ BPF_MAP_TYPE_HASH, 37, 3, 7, 0 },
		{ BPF_MAP_TYPE_PERCPU_ARRAY, 4, 32768, 1, 0 },
	};

	for (u32 i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		for (u32 k = 0; k < sizeof(shape) / sizeof(shape[0]); k++) {
			union bpf_attr attr = { .map_type = shape[k].type,
						.key_size = shape[k].key_size,
						.value_size = shape[k].value_size,
						.max_entries = shape[k].entries,
						.map_flags = shape[k].flags };
			int fd;

			strncpy(attr.map_name, name[i], sizeof(attr.map_name) - 1);
			fd = (int)bpf(BPF_MAP_CREATE, &attr);
			if (fd >= 0)
				map_take(fd);
		}
}

static void objects_make(const char *device)
{
	static u8 memory[8][4096];
	struct ibv_context *ctx = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq;

	must(pd && channel, "no PD or channel: %s", strerror(errno));
	srq = ibv_create_srq(pd, &srq_attr);
	must(srq, "no SRQ: %s", strerror(errno));
	for (u32 i = 0; i < 8; i++)
		must(ibv_reg_mr(pd, memory[i], sizeof(memory[i]), IBV_ACCESS_LOCAL_WRITE),
		     "no MR: %s", strerror(errno));
	for (u32 i = 0; i < 6; i++) {
		static const enum ibv_qp_type type[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
		struct ibv_cq *cq = ibv_create_cq(ctx, 32, NULL, i & 1 ? channel : NULL, 0);
		struct ibv_qp_init_attr attr = { .send_cq = cq,
						 .recv_cq = cq,
						 .srq = i < 3 ? srq : NULL,
						 .cap = { .max_send_wr = 8,
							  .max_recv_wr = 8,
							  .max_send_sge = 1,
							  .max_recv_sge = 1 },
						 .qp_type = type[i % 3] };
		struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		struct ibv_qp *qp;

		if (attr.qp_type == IBV_QPT_UC)
			attr.srq = NULL;
		must(cq, "no CQ: %s", strerror(errno));
		qp = ibv_create_qp(pd, &attr);
		must(qp, "no QP: %s", strerror(errno));
		mask |= attr.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
		must(!ibv_modify_qp(qp, &init, mask), "no INIT");
	}
}

static void maps_rewrite(void)
{
	for (u32 i = 0; i < num_maps; i++) {
		if (!maps[i].mapped)
			map_update(&maps[i]);
		else if (maps[i].is_ring)
			map_rewrite_ring(&maps[i]);
		else
			map_rewrite_mapping(&maps[i]);
	}
}

static const char *map_way(const struct map *m)
{
	if (m->is_ring)
		return "ring";
	if (m->mapped)
		return "mapped";
	return m->is_refused ? "refused" : "updated";
}

int main(int argc, char **argv)
{
	const struct timespec between = { .tv_nsec = ROUND_NS };
	const struct rlimit no_core = { 0 };

	must(argc >= 3, "usage: hostile_maps DEVICE SEED [PID...]");
	setvbuf(stdout, NULL, _IOLBF, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	state = strtoull(argv[2], NULL, 0) * 0x9e3779b97f4a7c15ull | 1;
	/* its own PID most often, as another process's is soon refused */
	pids[num_pids++] = (u32)getpid();
	for (int i = 3; i < argc && num_pids < PIDS - 2; i++)
		pids[num_pids++] = (u32)strtoul(argv[i], NULL, 0);
	while (num_pids < PIDS)
		pids[num_pids++] = (u32)getpid();
	objects_make(argv[1]);
	if (!strtoull(argv[2], NULL, 0)) {
		printf("honest\n");
		for (;;)
			pause();
	}
	/* the library continues with its objects: the maps are rewritten under it */
	keeps_maps = false;
	descriptors_take();
	impostors_make();
	must(num_maps, "no maps");
	for (u32 i = 0; i < 4; i++)
		maps_rewrite();
	for (u32 i = 0; i < num_maps; i++)
		printf("%s %s\n", maps[i].info.name, map_way(&maps[i]));
	printf("tellers %u\nrewriting\n", num_tellers);
	for (;;) {
		maps_rewrite();
		tell();
		name_change();
		nanosleep(&between, NULL);
	}
}
