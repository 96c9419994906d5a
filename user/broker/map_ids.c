/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../os/bpf_room.h"
#include "../os/kernel.h"
#include "../os/privilege.h"
#include "map_ids.h"
#include "xroce_held.skel.h"

#define MAP_IDS_STEP 1024u

u32 map_ids_of(int map_fd)
{
	struct bpf_map_info info = { 0 };
	u32 len = sizeof(info);

	return bpf_obj_get_info_by_fd(map_fd, &info, &len) ? 0 : info.id;
}

static int map_ids_load(struct map_ids *m)
{
	libbpf_print_fn_t before = privilege_hush_libbpf();
	int err;

	m->bpf = xroce_held_bpf__open();
	err = m->bpf ? bpf_load(m->bpf->skeleton) : -errno;
	if (!err) {
		m->link = bpf_program__attach_iter(m->bpf->progs.xroce_held, NULL);
		err = m->link ? 0 : -errno;
	}
	libbpf_set_print(before);
	if (err) {
		map_ids_free(m);
		m->err = kernel_is_short(err) ? 0 : err;
	}
	return err;
}

/* Makes room for another step. Returns 0 or -ENOMEM. */
static int map_ids_grow(struct map_ids *m)
{
	u32 *more;

	if (m->room - m->num >= MAP_IDS_STEP)
		return 0;
	more = reallocarray(m->id, m->room + MAP_IDS_STEP, sizeof(*m->id));
	if (!more)
		return -ENOMEM;
	m->id = more;
	m->room += MAP_IDS_STEP;
	return 0;
}

/* The kernel returns whole numbers, as each is written at once. */
static int map_ids_take(struct map_ids *m, int fd)
{
	ssize_t n;
	int err;

	m->num = 0;
	do {
		err = map_ids_grow(m);
		if (err)
			return err;
		n = read(fd, m->id + m->num, MAP_IDS_STEP * sizeof(*m->id));
		if (n > 0)
			m->num += (u32)n / sizeof(*m->id);
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	return n < 0 ? -errno : 0;
}

int map_ids_read(struct map_ids *m)
{
	int fd, err = m->link || m->err ? m->err : map_ids_load(m);

	if (err)
		return err;
	fd = bpf_iter_create(bpf_link__fd(m->link));
	if (fd < 0)
		return fd;
	err = map_ids_take(m, fd);
	close(fd);
	return err;
}

static int map_ids_order(const void *a, const void *b)
{
	const u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

bool map_ids_has(const struct map_ids *m, u32 id)
{
	return m->num && bsearch(&id, m->id, m->num, sizeof(id), map_ids_order);
}

void map_ids_free(struct map_ids *m)
{
	bpf_link__destroy(m->link);
	xroce_held_bpf__destroy(m->bpf);
	free(m->id);
	*m = (struct map_ids){ 0 };
}
