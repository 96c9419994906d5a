/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The shipped receiving XDP program, compiled for this machine. As in the code under test, each
 * access to shared memory is a scheduling point. Also its maps' names.
 */
int count_drop(unsigned int reason);
struct xdp_md;
int xroce_xdp(struct xdp_md *ctx);
#include "../../bpf/xroce.bpf.c"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "xdp.h"

/* As libbpf does, while its memory can be written to. */
void xdp_set_shared(bool shared)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
			at = (uintptr_t)&xroce_shared & ~(page - 1);

	if (xroce_shared == shared)
		return;
	if (mprotect((void *)at, page, PROT_READ | PROT_WRITE))
		abort();
	*(volatile bool *)&xroce_shared = shared;
}

/* Which map is it? */
enum xdp_map xdp_map_named(const void *map)
{
	return map == &xroce_qp	     ? MAP_QP :
	       map == &xroce_cq	     ? MAP_CQ :
	       map == &xroce_expect  ? MAP_EXPECT :
	       map == &xroce_channel ? MAP_CHANNEL :
	       map == &xroce_engine  ? MAP_ENGINE :
	       map == &xroce_vector  ? MAP_VECTOR :
	       map == &xroce_gid     ? MAP_GID :
	       map == &xroce_group   ? MAP_GROUP :
	       map == &xroce_drop    ? MAP_DROP :
	       map == &xroce_rx	     ? MAP_RX :
				       MAP_XSK;
}
