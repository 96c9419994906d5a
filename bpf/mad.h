/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parses messages of the connection manager (MADs), as far as needed to find their owner: the rule
 * of cm_mad_names() (user/cm/disconnect.c), described in docs/cm.md. Uses no map and no packet.
 */
#ifndef BPF_MAD_H
#define BPF_MAD_H

#include <stdbool.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <xroce/abi.h>

#define MAD_BYTES	  256u
#define MAD_BASE_VERSION  1
#define MAD_CLASS_CM	  7
#define MAD_CLASS_VERSION 2
#define MAD_METHOD_SEND	  3
#define MAD_REQ_QPN	  56u  /* the sender's QPN, and 8 other bits */
#define MAD_REQ_DATA	  164u /* offset of the private data */
#define MAD_SIDR_REQ_DATA 40u

/* As enum cm_kind (user/cm/mad.h). */
enum mad_kind {
	MAD_REQ = 0x10,
	MAD_MRA = 0x11,
	MAD_REJ = 0x12,
	MAD_REP = 0x13,
	MAD_RTU = 0x14,
	MAD_DREQ = 0x15,
	MAD_DREP = 0x16,
	MAD_SIDR_REQ = 0x17,
	MAD_SIDR_REP = 0x18,
	MAD_APR = 0x1a,
};

/* The start of a MAD. */
struct mad {
	__u8 base_version, class, class_version, method;
	__be16 status, class_specific;
	__u64 tid;	   /* as on the wire */
	__be16 attribute;  /* enum mad_kind */
	__be16 reserved;
	__be32 modifier;
	__be32 local_id;   /* the sender's; in SIDR the requester's */
	__be32 remote_id;  /* the receiver's; not in REQ and SIDR */
	__be64 service_id; /* in REQ and SIDR_REQ; in REP its second half starts with a QPN */
};
_Static_assert(sizeof(struct mad) == 40, "a MAD's beginning");

/* The start of a REQ's or SIDR_REQ's private data for an IP service. */
struct mad_ip_header {
	__u8 version, ip_version;
	__be16 source_port;
	__be32 source[4], destination[4];
};
_Static_assert(sizeof(struct mad_ip_header) == 36, "the IP header of the CM");

static __always_inline __u32 mad_kind(const struct mad *m)
{
	return bpf_ntohs(m->attribute);
}

static __always_inline bool mad_is_cm(const struct mad *m)
{
	return m->base_version == MAD_BASE_VERSION && m->class == MAD_CLASS_CM &&
	       m->class_version == MAD_CLASS_VERSION && m->method == MAD_METHOD_SEND &&
	       mad_kind(m) >= MAD_REQ && mad_kind(m) <= MAD_APR;
}

static __always_inline bool mad_is_request(const struct mad *m)
{
	return mad_kind(m) == MAD_REQ || mad_kind(m) == MAD_SIDR_REQ;
}

/* Returns whether this is a REJ of a peer that never learnt our id, as it gave up before. */
static __always_inline bool mad_names_peer(const struct mad *m)
{
	return mad_kind(m) == MAD_REJ && !m->remote_id;
}

/* Returns the id of the receiver. Not for requests, nor if mad_names_peer(). */
static __always_inline __u32 mad_id(const struct mad *m)
{
	return bpf_ntohl(mad_kind(m) == MAD_SIDR_REP ? m->local_id : m->remote_id);
}

/* Returns whether only the client that receives the MAD may answer it. */
static __always_inline bool mad_is_asked(const struct mad *m)
{
	return mad_is_request(m) || mad_kind(m) == MAD_REP;
}

/* Returns the sender's QPN in a REP. */
static __always_inline __u32 mad_rep_qpn(const struct mad *m)
{
	return (__u32)bpf_be64_to_cpu(m->service_id) >> 8;
}

/* As cm_service_is_ip() (user/cm/mad.c). */
static __always_inline bool mad_service_is_ip(__u64 service_id)
{
	return service_id >> 24 == 1 || service_id >> 16 == 2;
}

static __always_inline bool mad_is_loopback(const struct mad_ip_header *h, const __be32 *address)
{
	const bool ipv4 = h->ip_version >> 4 == 4;

	if (address[0] | address[1] | address[2])
		return false;
	return ipv4 ? (address[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000) :
		      address[3] == bpf_htonl(1);
}

/* Returns whether the sender connects to this node by a loopback address. */
static __always_inline bool mad_is_by_loopback(const struct mad_ip_header *h)
{
	return !h->version && (h->ip_version >> 4 == 4 || h->ip_version >> 4 == 6) &&
	       mad_is_loopback(h, h->source) && mad_is_loopback(h, h->destination);
}

#endif
