/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <xroce/trace.h>

#include "../os/netdev.h"
#include "program.h"
#include "xroce.skel.h"

struct xroce_bpf *program_open(void)
{
	struct xroce_bpf *bpf = xroce_bpf__open();

	if (bpf && !netdev_kernel_syscall_context())
		bpf_program__set_autoload(bpf->progs.xroce_tell, false);
	return bpf;
}
