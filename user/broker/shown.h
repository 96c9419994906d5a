/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A client's maps, for whoever looks into them: descriptors that can be read and not written. Those
 * that the client has itself are of no use to another, which could change what they count.
 */
#ifndef BROKER_SHOWN_H
#define BROKER_SHOWN_H

#include "../base/ask.h"

/*
 * Opens maps of that program that are made for reading (base/shown_maps.h), without the first ones.
 * Returns how many, up to ASK_FDS, or -errno; descriptors are the caller's, by shown_close().
 */
int shown_open(u32 prog_id, u32 first, int fd[ASK_FDS]);
void shown_close(const int *fd, int n);

#endif
