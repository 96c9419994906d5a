/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's TAP devices: two that each client sends by, and the hairpin. They have no address,
 * resolve nothing, and what the kernel would send by them is dropped.
 *
 * A client holds its TAP's descriptor and can keep the device in being with it (TUNSETPERSIST, or a
 * copy in another process), so a TAP goes by its deletion, never by closing alone.
 */
#ifndef BROKER_TAP_H
#define BROKER_TAP_H

#include "../engine/types.h"

/*
 * A new device for a broker of that interface, down: its hairpin, which is named xrtN after the
 * interface's number, or one for a client, xrtN.M, for all frames or for single ones alone. Returns
 * its descriptor, close-on-exec and non-blocking, or -errno.
 */
enum tap_kind { TAP_HAIRPIN, TAP_ALL, TAP_SINGLE };
int tap_make(u32 for_ifindex, enum tap_kind kind, u32 *tap);

/*
 * The programs that see what comes out of the descriptor (ingress), and what the kernel sends to it
 * (egress). They stay as long as the device, and go with it. Returns 0 or -errno.
 */
int tap_guard(u32 tap, int ingress_prog_fd, int egress_prog_fd);

/* Up; with its programs on it. Returns 0 or -errno. */
int tap_set_up(u32 tap);

/*
 * Deletes n devices, of which some may be gone already or 0. The kernel takes 20 ms, for one as for
 * many. Returns 0 or -errno.
 */
int tap_delete(const u32 *tap, u32 n);

/* Is it the name of a hairpin? */
bool tap_is_hairpin(const char *name);
/*
 * Calls fn for the hairpin of each interface of this network namespace that has one. Returns 0 or
 * -errno.
 */
typedef void tap_fn(void *arg, u32 ifindex, u32 hairpin);
int tap_each_hairpin(tap_fn *fn, void *arg);

/*
 * Deletes what brokers of that interface have left whose clients live on, but for keep (0: none).
 * Returns 0 or -errno.
 */
int tap_sweep(u32 for_ifindex, u32 keep);
/* The device that a descriptor is of: 0 or -errno. */
int tap_find(int fd, u32 *tap);

#endif
