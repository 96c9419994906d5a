/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The MADs of the connection manager: 256 bytes between the QP1s of two nodes, as in chapter 12 of
 * the InfiniBand architecture. A decoded MAD is a struct cm_mad in host byte order; GIDs and data
 * are bytes. Reserved fields are sent as 0 and ignored when received. Stateless.
 */
#ifndef CM_MAD_H
#define CM_MAD_H

#include "../engine/types.h"

#define CM_MAD_BYTES 256u
#define CM_QKEY	     0x80010000u /* of QP1 */

/* The attribute of a MAD's header. */
enum cm_kind {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
	CM_KIND_END
};

/* Why a received MAD was not used: first the codec's reasons, then cm_input()'s. X(name, text) */
#define CM_DROPS(X)                                                                      \
	X(none, "used")                                                                  \
	X(length, "not 256 bytes")                                                       \
	X(base_version, "a MAD version that is not 1")                                   \
	X(class, "not of the communication management class")                            \
	X(class_version, "a class version that is not 2")                                \
	X(method, "a method that is not Send")                                           \
	X(attribute, "an attribute that the class does not have")                        \
	X(field, "a field with a reserved value")                                        \
	X(busy, "no room for an event: the peer retransmits it")                         \
	X(refused, "rejected without creating a connection")                             \
	X(path, "addresses differ from the connection's")                                \
	X(tid, "a transaction id that matches no request")                               \
	X(qpn, "a disconnect that names another QP")                                     \
	X(state, "not expected in the connection's state")                               \
	X(duplicate, "duplicate; answered again if it is a request")                     \
	X(backlog, "the listener's backlog is full: the peer retransmits it")            \
	X(half_open, "too many half-open connections of the address: the peer retransmits it") \
	X(resources, "refused: too many connections")

enum cm_drop {
#define CM_DROP_ENUM(name, text) CM_DROP_##name,
	CM_DROPS(CM_DROP_ENUM)
#undef CM_DROP_ENUM
	CM_DROP_END
};

/* Reasons of a REJ that are used here. */
enum cm_reason {
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER_DEFINED = 28,
};

/* Which message a REJ or an MRA is about. */
enum cm_about {
	CM_ABOUT_REQ = 0,
	CM_ABOUT_REP = 1,
	CM_ABOUT_OTHER = 2, /* REJ: none; MRA: a LAP */
};

enum cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3, /* see extended_transport */
};
#define CM_EXTENDED_XRC 1

enum cm_apr_status {
	CM_APR_INVALID_COMM_ID = 1,
	CM_APR_UNSUPPORTED = 2,
};

enum cm_sidr_status {
	CM_SIDR_VALID = 0,
	CM_SIDR_UNSUPPORTED = 1, /* no listener */
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_STATUS_END = 6,
};

/* A path in a REQ or LAP. */
struct cm_mad_path {
	struct gid local, remote;
	u32 flow_label;
	u16 local_lid, remote_lid;
	u8 rate, traffic_class, hop_limit, sl, subnet_local;
	u8 ack_timeout;
};

struct cm_req {
	u64 service_id, ca_guid;
	/* Enhanced connection establishment, as in REP; the options are in the MAD's attr_mod. */
	u32 vendor_id, ece_options;
	u32 qkey, qpn, eecn, remote_eecn, starting_psn;
	u8 responder_resources, initiator_depth;
	u8 remote_response_timeout; /* time that the sender gives the receiver */
	u8 local_response_timeout;  /* time that the sender itself may need */
	u8 transport, extended_transport, flow_control;
	u8 retry_count, rnr_retry_count;
	u16 pkey;
	u8 mtu; /* 1: 256 bytes .. 5: 4096 */
	u8 rdc_exists, max_retries, srq;
	struct cm_mad_path primary, alternate;
};

struct cm_mra {
	u8 about, service_timeout;
};

#define CM_ARI_MAX 72
struct cm_rej {
	u8 about, info_len;
	u16 reason;
	u8 info[CM_ARI_MAX];
};

struct cm_rep {
	u64 ca_guid;
	u32 vendor_id, ece_options, qkey, qpn, eecn, starting_psn;
	u8 responder_resources, initiator_depth;
	u8 target_ack_delay, failover, flow_control, rnr_retry_count, srq;
};

struct cm_dreq {
	u32 qpn; /* the receiver's */
};

struct cm_lap {
	u32 qpn;
	u8 remote_response_timeout;
	struct cm_mad_path alternate;
};

struct cm_apr {
	u8 status, info_len;
	u8 info[CM_ARI_MAX];
};

struct cm_sidr_req {
	u64 service_id;
	u16 pkey;
};

struct cm_sidr_rep {
	u64 service_id;
	u32 vendor_id, qpn, qkey;
	u8 status, info_len;
	u8 info[CM_ARI_MAX];
};

#define CM_DATA_MAX 224

struct cm_mad {
	enum cm_kind kind;
	u64 tid;
	u32 attr_mod;
	u32 local_id;  /* the sender's communication id; SIDR: the request id, in both directions */
	u32 remote_id; /* the receiver's; 0 while unknown, and for SIDR */
	union {
		struct cm_req req;
		struct cm_mra mra;
		struct cm_rej rej;
		struct cm_rep rep;
		struct cm_dreq dreq;
		struct cm_lap lap;
		struct cm_apr apr;
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
	};
	/* Private data of cm_data_room() bytes; bytes that the sender left out are 0. */
	u8 data[CM_DATA_MAX];
};

/* Returns the bytes of private data of a kind; 0 for an unknown kind. */
u32 cm_data_room(u32 kind);

/*
 * Returns CM_DROP_none, or the error (*m is then undefined): length, versions, class, method,
 * attribute, or a reserved value in a field whose error no REJ can report.
 */
enum cm_drop cm_mad_decode(struct cm_mad *m, const void *mad, u32 len);

/* Encodes the MAD. Values wider than their field lose the upper bits. */
void cm_mad_encode(u8 mad[CM_MAD_BYTES], const struct cm_mad *m);

/* Returns 4.096 us x 2^exponent, using the lower 5 bits of exponent. */
static inline u64 cm_time_ns(u8 exponent)
{
	return 4096ull << (exponent & 31);
}

/*
 * Services of IP port spaces: the service id of a port, and the 36 bytes before the private data of
 * a REQ or SIDR_REQ with the addresses of the connection. Stateless.
 */

enum cm_port_space {
	CM_PS_IPOIB = 0x0002,
	CM_PS_TCP = 0x0106,
	CM_PS_UDP = 0x0111,
	CM_PS_IB = 0x013f,
};

#define CM_IP_HEADER_BYTES 36u

/* Addresses as GIDs: IPv4 as ::ffff:a.b.c.d. */
struct cm_ip_header {
	u16 source_port;
	struct gid source, destination; /* both of one family */
};

static inline u64 cm_service_id(enum cm_port_space space, u16 port)
{
	return (u64)space << 16 | port;
}

/* Returns whether private data of a REQ for this service begins with an IP header. */
bool cm_service_is_ip(u64 service_id);

/*
 * Reads the header at data, which has CM_IP_HEADER_BYTES. Returns false if its version, its IP
 * version or the unused bytes of an IPv4 address are invalid.
 */
bool cm_ip_header_get(struct cm_ip_header *h, const u8 *data);
void cm_ip_header_put(u8 *data, const struct cm_ip_header *h);

/* 127.0.0.0/8 or ::1 */
bool cm_is_loopback(const struct gid *address);
/* 0.0.0.0 or :: */
bool cm_is_any(const struct gid *address);

#endif
