/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whole Ethernet frames in and out of an interface, by packet socket. It never looks into them. */
#ifndef NETNS_WIRE_H
#define NETNS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_FRAME_MAX 65536

/*
 * A socket on the interface that receives arriving frames only; receive false: only for sending.
 */
int wire_open(const char *ifname, bool receive);
/* Send one frame; waits while the interface's queue is full. */
void wire_send(int fd, const uint8_t *frame, size_t len);
/* Take one frame; 0 when there is none. */
size_t wire_receive(int fd, uint8_t *frame, size_t room);

/*
 * Offset of the IP header after up to two VLAN tags if the frame is UDP to port 4791 of a readable
 * length; else 0.
 */
size_t wire_roce_ip(const uint8_t *frame, size_t len, bool *ipv6);

#endif
