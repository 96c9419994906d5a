/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's header, with a context of XDP programs whose addresses are this machine's. */
#ifndef HOST_LINUX_BPF_H
#define HOST_LINUX_BPF_H

#define xdp_md xdp_md_of_kernel
#include_next <linux/bpf.h>
#undef xdp_md

/* The fields that the programs read. The packet is contiguous; metadata is not used. */
struct xdp_md {
	unsigned long data, data_end, data_meta;
	__u32 ingress_ifindex, rx_queue_index;
};

#endif
