/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pin.h"
#include "../os/xdp_maps.h"
#include "readonly_maps.h"

const struct readonly_maps readonly_maps_none = { .slot = TRACE_SLOT_MAPS_NONE };

/* ---- read-only descriptors ---- */

/*
 * Reopens a map by a name in the BPF file system, to whose root the broker's user must be able to
 * write. Only that user can open the name, which is removed at once.
 */
static int readonly_maps_reopen_by_name(int map_fd, u32 id)
{
	LIBBPF_OPTS(bpf_obj_get_opts, opts, .file_flags = BPF_F_RDONLY);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), PIN_MOUNT "/xroce-shown-%u", id);
	fd = bpf_obj_pin(map_fd, path);
	if (fd)
		return fd;
	fd = bpf_obj_get_opts(path, &opts);
	unlink(path);
	return fd;
}

/* Returns a read-only descriptor of the same map, or -errno. */
static int readonly_maps_reopen(int map_fd, u32 id)
{
	LIBBPF_OPTS(bpf_get_fd_by_id_opts, opts, .open_flags = BPF_F_RDONLY);
	const int fd = bpf_map_get_fd_by_id_opts(id, &opts);

	/* without CAP_SYS_ADMIN */
	return fd == -EPERM ? readonly_maps_reopen_by_name(map_fd, id) : fd;
}

/* Returns 0 or -errno. */
static int readonly_maps_copy(int fd, int *to)
{
	*to = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return *to < 0 ? -errno : 0;
}

/* Notes that a map cannot be opened for reading: clients work without observers. Returns fd. */
static int readonly_maps_note(struct readonly_maps *s, int fd)
{
	if (fd < 0 && !s->err)
		s->err = fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : -EPERM;
	return fd;
}

/* ---- a map ---- */

static int readonly_maps_add_engine(struct readonly_maps *s, int fd)
{
	s->engine = mmap(NULL, sizeof(*s->engine), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s->engine == MAP_FAILED) {
		s->engine = NULL;
		return -errno;
	}
	return readonly_maps_copy(fd, &s->slot.engine_fd);
}

static int readonly_maps_add_page(struct readonly_maps *s, int fd, u32 id)
{
	s->slot.page_fd = readonly_maps_note(s, readonly_maps_reopen(fd, id));
	return readonly_maps_copy(fd, &s->slot.trace_fd);
}

/* The descriptor stays the caller's. Returns 0 or -errno. */
static int readonly_maps_add(struct readonly_maps *s, int fd)
{
	struct bpf_map_info map = { 0 };
	u32 len = sizeof(map);
	int err = bpf_obj_get_info_by_fd(fd, &map, &len), one;

	if (!err && readonly_map_is(map.name) && s->num < READONLY_MAPS_MAPS) {
		one = readonly_maps_note(s, readonly_maps_reopen(fd, map.id));
		if (one >= 0)
			s->fd[s->num++] = one;
	}
	if (!err && !strcmp(map.name, XROCE_MAP_ENGINE) && !s->engine)
		err = readonly_maps_add_engine(s, fd);
	else if (!err && !strcmp(map.name, XROCE_MAP_TRACE) && s->slot.trace_fd < 0)
		err = readonly_maps_add_page(s, fd, map.id);
	else if (!err && !strcmp(map.name, XROCE_MAP_TRACER) && s->slot.rings_fd < 0)
		err = readonly_maps_copy(fd, &s->slot.rings_fd);
	return err;
}

/* ---- all maps ---- */

int readonly_maps_open(struct readonly_maps *s, const struct bpf_object *object)
{
	const struct bpf_map *map;
	int err = 0;

	*s = readonly_maps_none;
	bpf_object__for_each_map(map, object) {
		if (!err && bpf_map__fd(map) >= 0)
			err = readonly_maps_add(s, bpf_map__fd(map));
	}
	if (err)
		readonly_maps_close(s);
	return err;
}

void readonly_maps_close(struct readonly_maps *s)
{
	for (u32 i = 0; i < s->num; i++)
		close(s->fd[i]);
	if (s->engine)
		munmap(s->engine, sizeof(*s->engine));
	trace_slot_maps_close(&s->slot);
	*s = readonly_maps_none;
}
