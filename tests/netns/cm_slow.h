/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages between mad_peer.c and cm_slow.c. */
#ifndef NETNS_CM_SLOW_H
#define NETNS_CM_SLOW_H

#define SLOW_PORT     7480
#define SLOW_QPN      0x4567 /* of the program that is on librdmacm, */
#define SLOW_PEER_QPN 0x7654 /* and of its peer */
/* of the enhanced connection establishment; the program's options */
#define SLOW_ECE_VENDOR	     0x123456u
#define SLOW_OWN_ECE_OPTIONS 0x01234567u
#define SLOW_ECE_OPTIONS     0x89abcdefu /* its peer's */

#endif
