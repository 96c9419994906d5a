/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "file_ids.h"

#define FILE_IDS_STEP 256u

/* Returns the place of the first number that is not less than id. */
static u32 file_ids_at(const struct file_ids *f, u32 id)
{
	u32 low = 0, high = f->num;

	while (low < high) {
		const u32 mid = (low + high) / 2;

		if (f->id[mid] < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool file_ids_has(const struct file_ids *f, u32 id)
{
	const u32 at = file_ids_at(f, id);

	return at < f->num && f->id[at] == id;
}

static void file_ids_remove(struct file_ids *f, u32 id)
{
	const u32 at = file_ids_at(f, id);

	if (at == f->num || f->id[at] != id)
		return;
	f->num--;
	memmove(f->id + at, f->id + at + 1, (f->num - at) * sizeof(*f->id));
}

void file_ids_read(struct file_ids *f)
{
	_Alignas(struct inotify_event) char room[4096];
	struct inotify_event event;
	ssize_t n;

	if (!f->is_open)
		return;
	while ((n = read(f->fd, room, sizeof(room))) > 0)
		for (ssize_t at = 0; at < n; at += (ssize_t)(sizeof(event) + event.len)) {
			memcpy(&event, room + at, sizeof(event));
			/* events were lost: no file counts any longer */
			if (event.mask & IN_Q_OVERFLOW)
				f->num = 0;
			else if (event.mask & IN_IGNORED)
				file_ids_remove(f, (u32)event.wd);
		}
}

/* Makes room for one more, and the inotify instance. Returns false if it cannot. */
static bool file_ids_grow(struct file_ids *f)
{
	u32 *more;

	if (!f->is_open) {
		f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		f->is_open = f->fd >= 0;
	}
	if (!f->is_open || f->num < f->room)
		return f->is_open;
	more = reallocarray(f->id, f->room + FILE_IDS_STEP, sizeof(*f->id));
	if (!more)
		return false;
	f->id = more;
	f->room += FILE_IDS_STEP;
	return true;
}

u32 file_ids_add(struct file_ids *f, int fd)
{
	char path[40];
	u32 id, at;
	int wd;

	file_ids_read(f);
	if (!file_ids_grow(f))
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(f->fd, path, IN_DELETE_SELF);
	if (wd <= 0)
		return 0;
	id = (u32)wd;
	at = file_ids_at(f, id);
	if (at < f->num && f->id[at] == id)
		return id;
	memmove(f->id + at + 1, f->id + at, (f->num - at) * sizeof(*f->id));
	f->id[at] = id;
	f->num++;
	return id;
}

void file_ids_free(struct file_ids *f)
{
	if (f->is_open)
		close(f->fd);
	free(f->id);
	*f = (struct file_ids){ 0 };
}
