/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens the maps of a port, finds them by name and reads them. */
#define _GNU_SOURCE /* F_GET_SEALS */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../client/shared_maps.h"
#include "../../os/xdp_maps.h"
#include "observe_maps.h"

#define OBSERVED_VALUE_MAX   65536u
#define OBSERVED_RING_MAX    (1u << 28)
#define OBSERVED_BATCH	     256u
#define OBSERVED_ENTRIES_MAX 65536u /* limit of all xroce maps */

/* ---- opening ---- */

/* Numbers of entries of the maps that are files (user/host/client.c). */
static u32 observed_file_entries(const char *name)
{
	static const struct {
		const char *name;
		u32 num;
	} all[] = {
#define X(member, map, which, n) { #map, n },
		SHARED_MAPS(X)
#undef X
		{ XROCE_MAP_DROP, 1 },
		{ XROCE_MAP_RX, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].num;
	return 0;
}

/* Returns whether fd is a file in memory that cannot shrink, which would kill its reader. */
static bool observed_is_sealed(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* Describes a map that is a file, by the name that it was made with. */
static bool observed_describe_file(int fd, struct bpf_map_info *info)
{
	static const char prefix[] = "/memfd:";
	char path[40], name[64] = "";
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < (ssize_t)sizeof(prefix) || strncmp(name, prefix, sizeof(prefix) - 1) ||
	    fstat(fd, &st) || !observed_is_sealed(fd))
		return false;
	snprintf(info->name, sizeof(info->name), "%.*s",
		 (int)min_u32((u32)strcspn(name + sizeof(prefix) - 1, " "),
			      sizeof(info->name) - 1),
		 name + sizeof(prefix) - 1);
	info->type = BPF_MAP_TYPE_ARRAY;
	info->key_size = sizeof(u32);
	info->max_entries = observed_file_entries(info->name);
	info->value_size = info->max_entries ? (u32)st.st_size / info->max_entries : 0;
	return info->value_size;
}

static size_t observed_bytes(const struct observed_map *m)
{
	return (size_t)m->max_entries * m->value_size;
}

/* Reads a value. Returns 0 or -errno. */
static int observed_read(const struct observed_map *m, u32 key, void *value)
{
	if (!m->memory)
		return bpf_map_lookup_elem(m->fd, &key, value);
	memcpy(value, m->memory + (size_t)key * m->value_size, m->value_size);
	return 0;
}

/* Takes ownership of fd: adds it to the port's maps or closes it. */
static int observed_take(struct observed *p, int fd)
{
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);
	struct observed_map *maps;
	const u8 *memory = NULL;
	struct stat st;
	bool is_file;
	int err;

	is_file = !fstat(fd, &st) && S_ISREG(st.st_mode);
	if ((is_file ? !observed_describe_file(fd, &info) :
		       bpf_obj_get_info_by_fd(fd, &info, &len)) ||
	    info.value_size > OBSERVED_VALUE_MAX || info.max_entries > OBSERVED_ENTRIES_MAX ||
	    info.key_size > sizeof(struct xroce_service_key) || !readonly_map_is(info.name)) {
		close(fd);
		return 0;
	}
	if (p->num_maps == p->room) {
		maps = reallocarray(p->maps, p->room + 32, sizeof(*maps));
		if (!maps) {
			close(fd);
			return -ENOMEM;
		}
		p->maps = maps;
		p->room += 32;
	}
	if (is_file) {
		memory = mmap(NULL, (size_t)info.max_entries * info.value_size, PROT_READ,
			      MAP_SHARED, fd, 0);
		if (memory == MAP_FAILED) {
			err = -errno;
			close(fd);
			return err;
		}
	}
	p->maps[p->num_maps] = (struct observed_map){ .id = is_file ? (u32)st.st_ino : info.id,
						      .fd = fd,
						      .memory = memory,
						      .type = info.type,
						      .max_entries = info.max_entries,
						      .key_size = info.key_size,
						      .value_size = info.value_size };
	memcpy(p->maps[p->num_maps].name, info.name, sizeof(p->maps[0].name));
	p->num_maps++;
	return 0;
}

int observed_map_ids(u32 prog_id, u32 ids[OBSERVED_IDS])
{
	struct bpf_prog_info prog = { .nr_map_ids = OBSERVED_IDS, .map_ids = (uintptr_t)ids };
	u32 len = sizeof(prog);
	int fd = bpf_prog_get_fd_by_id(prog_id), err;

	if (fd < 0)
		return fd;
	/* valgrind does not know what the kernel writes */
	memset(ids, 0, OBSERVED_IDS * sizeof(*ids));
	err = bpf_obj_get_info_by_fd(fd, &prog, &len);
	close(fd);
	return err ? err : (int)min_u32(prog.nr_map_ids, OBSERVED_IDS);
}

/* Opens the maps by ID, which needs CAP_SYS_ADMIN. */
static int observed_open_ids(struct observed *p)
{
	LIBBPF_OPTS(bpf_get_fd_by_id_opts, opts, .open_flags = BPF_F_RDONLY);
	u32 ids[OBSERVED_IDS];
	const int num = observed_map_ids(p->prog_id, ids);
	int fd, err = num < 0 ? num : 0;

	for (int i = 0; !err && i < num; i++) {
		fd = bpf_map_get_fd_by_id_opts(ids[i], &opts);
		if (fd >= 0)
			err = observed_take(p, fd);
		else if (fd == -EMFILE || fd == -ENFILE)
			err = fd;
	}
	return err;
}

/* Clients may come and go between two questions. */
static bool observed_is_same(const struct observed *p, const struct ask_client *c)
{
	return c->client == p->client && c->prog_id == p->prog_id && c->pid == p->pid;
}

static int observed_open_asked(struct observed *p)
{
	int fds[ASK_FDS], n, err = 0;
	struct ask_client client;
	u32 first = 0;

	if (!p->iface->asks)
		return -EPERM;
	do {
		n = ask_maps(p->iface->asker, p->client, first, &client, fds);
		if (n > 0 && !observed_is_same(p, &client))
			err = -ENOENT;
		for (int i = 0; i < n; i++) {
			if (err)
				close(fds[i]);
			else
				err = observed_take(p, fds[i]);
		}
		first += n > 0 ? (u32)n : 0;
	} while (n > 0 && !err && first < OBSERVED_IDS);
	return err ? err : n < 0 ? n : first ? 0 : -ENOENT;
}

int observed_open(struct observed *p)
{
	int err;

	if (p->num_maps)
		return 0;
	/* a process at a broker with UDP sockets has no program */
	err = p->prog_id & ASK_NO_PROGRAM ? -EPERM : observed_open_ids(p);
	if (err == -EPERM)
		err = observed_open_asked(p);
	if (err)
		observed_close(p);
	return err;
}

void observed_close_map(struct observed_map *m)
{
	if (m->memory)
		munmap((void *)(uintptr_t)m->memory, observed_bytes(m));
	close(m->fd);
}

void observed_close(struct observed *p)
{
	for (u32 i = 0; i < p->num_maps; i++)
		observed_close_map(&p->maps[i]);
	free(p->maps);
	p->maps = NULL;
	p->num_maps = p->room = 0;
}

/* ---- reading ---- */

const struct observed_map *observed_map(const struct observed *p, const char *name,
					const struct observed_map *before)
{
	for (u32 i = before ? (u32)(before - p->maps) + 1 : 0; i < p->num_maps; i++)
		if (!strncmp(p->maps[i].name, name, OBSERVED_NAME_MAX))
			return &p->maps[i];
	return NULL;
}

static bool map_is_per_cpu(const struct observed_map *m)
{
	return m->type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static bool map_is_array(const struct observed_map *m)
{
	return (m->type == BPF_MAP_TYPE_ARRAY || map_is_per_cpu(m)) && m->key_size == sizeof(u32);
}

int observed_sum(const struct observed *p, const char *name, u64 *sum, size_t counters)
{
	const struct observed_map *m = observed_map(p, name, NULL);
	int cpus = 1, err = 0;
	size_t stride;
	u64 *value;

	memset(sum, 0, counters * sizeof(*sum));
	if (!m || !map_is_array(m))
		return -ENOENT;
	if (map_is_per_cpu(m))
		cpus = libbpf_num_possible_cpus();
	/* new counters are only appended, so another version's value may be shorter */
	stride = (m->value_size + sizeof(*sum) - 1) / sizeof(*sum);
	value = cpus > 0 ? calloc((size_t)cpus, stride * sizeof(*sum)) : NULL;
	if (!value)
		return -ENOMEM;
	for (u32 i = 0; !err && i < m->max_entries; i++) {
		err = observed_read(m, i, value);
		for (int c = 0; !err && c < cpus; c++)
			for (size_t k = 0; k < counters && k < stride; k++)
				sum[k] = counter_plus(sum[k], value[(size_t)c * stride + k]);
	}
	free(value);
	return err;
}

/* Copies a value of the map, cut or zero-padded to size bytes. */
static void map_fit(const struct observed_map *m, const u8 *from, u8 *to, size_t size)
{
	memset(to, 0, size);
	memcpy(to, from, m->value_size < size ? m->value_size : size);
}

/* As map_each(), for a map that is a file. */
static int map_each_in_file(const struct observed *p, const struct observed_map *m, size_t size,
			    observed_fn *fn, void *arg)
{
	u8 *one = calloc(1, size);

	if (!one)
		return -ENOMEM;
	for (u32 i = 0; i < m->max_entries; i++) {
		map_fit(m, m->memory + (size_t)i * m->value_size, one, size);
		fn(arg, p, &i, one);
	}
	free(one);
	return (int)m->max_entries;
}

static int map_each(const struct observed *p, const struct observed_map *m, size_t size,
		    observed_fn *fn, void *arg)
{
	u8 *keys = calloc(OBSERVED_BATCH, m->key_size), *one = calloc(1, size);
	u8 *values = calloc(OBSERVED_BATCH, m->value_size);
	u8 at[sizeof(struct xroce_service_key)] = { 0 };
	u32 seen = 0, n;
	int err = keys && values && one ? 0 : -ENOMEM;

	while (!err && seen < m->max_entries) {
		n = OBSERVED_BATCH;
		err = bpf_map_lookup_batch(m->fd, seen ? at : NULL, at, keys, values, &n, NULL);
		if (err && err != -ENOENT)
			break;
		for (u32 i = 0; i < n && seen < m->max_entries; i++, seen++) {
			map_fit(m, values + (size_t)i * m->value_size, one, size);
			fn(arg, p, keys + (size_t)i * m->key_size, one);
		}
		if (!n && !err)
			break;
	}
	free(keys);
	free(values);
	free(one);
	return err && err != -ENOENT ? err : (int)seen;
}

int observed_each(const struct observed *p, const char *name, size_t size, observed_fn *fn,
		  void *arg)
{
	int n, all = 0;

	for (const struct observed_map *m = NULL; (m = observed_map(p, name, m));) {
		if (map_is_per_cpu(m))
			continue;
		n = m->memory ? map_each_in_file(p, m, size, fn, arg) :
				map_each(p, m, size, fn, arg);
		if (n < 0)
			return n;
		all += n;
	}
	return all;
}

void observe_trace_lost(int page_fd, u32 number, u64 *lost)
{
	struct xroce_trace page;
	const u32 first = 0;

	if (observed_is_sealed(page_fd) ? pread(page_fd, &page, sizeof(page), 0) == sizeof(page) :
					  !bpf_map_lookup_elem(page_fd, &first, &page))
		*lost = page.tracer[number].lost;
}

u32 observe_ring_bytes(int fd, bool *is_file)
{
	const size_t pages = 2 * (size_t)sysconf(_SC_PAGESIZE);
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);
	size_t bytes = 0;
	struct stat st;

	*is_file = observed_is_sealed(fd);
	if (*is_file)
		bytes = !fstat(fd, &st) && (size_t)st.st_size > pages ?
				(size_t)st.st_size - pages : 0;
	else if (!bpf_obj_get_info_by_fd(fd, &info, &len) && info.type == BPF_MAP_TYPE_RINGBUF)
		bytes = info.max_entries;
	return bytes > OBSERVED_RING_MAX || bytes & (bytes - 1) ? 0 : (u32)bytes;
}

int observed_get(const struct observed *p, const char *name, u32 key, void *value, size_t size)
{
	const struct observed_map *m = observed_map(p, name, NULL);
	u8 *whole;
	int err;

	if (!m || m->type != BPF_MAP_TYPE_ARRAY || !map_is_array(m))
		return -ENOENT;
	whole = calloc(1, m->value_size);
	if (!whole)
		return -ENOMEM;
	err = key < m->max_entries ? observed_read(m, key, whole) : -ENOENT;
	if (!err)
		map_fit(m, whole, value, size);
	free(whole);
	return err;
}
