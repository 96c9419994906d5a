/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's TAP devices: two for the frames of each client, one for the broker's MADs, and the
 * hairpin. They have no address and no ARP, and frames that the kernel sends to them are dropped.
 *
 * A client can keep a device in existence by its descriptor (TUNSETPERSIST, or a copy in another
 * process). So the broker deletes devices, and does not only close them.
 */
#ifndef BROKER_TAP_H
#define BROKER_TAP_H

#include "../engine/types.h"

/*
 * Makes a device, down, for the broker of an interface with ifindex N: its hairpin, xrtN, or a
 * client's device, xrtN.M, for all frames or for single frames only. Returns its descriptor,
 * close-on-exec and non-blocking, or -errno.
 */
enum tap_kind { TAP_HAIRPIN, TAP_ALL, TAP_SINGLE };
int tap_make(u32 for_ifindex, enum tap_kind kind, u32 *tap);

/*
 * Attaches tc programs for frames written to the descriptor (ingress) and frames that the kernel
 * sends (egress). They stay as long as the device. Returns 0 or -errno.
 */
int tap_guard(u32 tap, int ingress_prog_fd, int egress_prog_fd);

/* Sets a device up, after tap_guard(). Returns 0 or -errno. */
int tap_set_up(u32 tap);

/*
 * Deletes n devices; some may be deleted already, or 0. The kernel takes 20 ms for one, 40 ms for
 * 32. Returns 0 or -errno.
 */
int tap_delete(const u32 *tap, u32 n);

/* Returns whether this is the name of a hairpin. */
bool tap_is_hairpin(const char *name);
/*
 * Calls fn for the hairpin of each interface of this network namespace that has one. Returns 0 or
 * -errno.
 */
typedef void tap_fn(void *arg, u32 ifindex, u32 hairpin);
int tap_each_hairpin(tap_fn *fn, void *arg);

/*
 * Deletes the devices that earlier brokers of an interface left to live clients. Returns 0 or
 * -errno.
 */
int tap_sweep(u32 for_ifindex);

#endif
