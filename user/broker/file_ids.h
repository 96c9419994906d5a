/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which files of a broker with UDP sockets still exist after the broker has closed them: as long as
 * a process has a descriptor or a mapping of one (inotify(7)).
 */
#ifndef BROKER_FILE_IDS_H
#define BROKER_FILE_IDS_H

#include "../engine/types.h"

struct file_ids {
	bool is_open;
	int fd;	 /* of inotify */
	u32 *id; /* of files that exist, sorted; the first num of room are valid */
	u32 num, room;
};

/* Returns a number for an open file without a name, or 0 if it cannot be watched. Needs /proc. */
u32 file_ids_add(struct file_ids *f, int fd);
/* Removes the numbers of files that no longer exist. */
void file_ids_read(struct file_ids *f);
/* Returns whether the file existed at the last file_ids_read(). */
bool file_ids_has(const struct file_ids *f, u32 id);
void file_ids_free(struct file_ids *f);

#endif
