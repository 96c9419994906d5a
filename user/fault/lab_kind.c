/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "lab_kind.h"

/*
 * Numbers: an opcode's own number, except that opcodes whose top bits are 111, which the table of
 * opcodes does not use, stand for the kinds that an opcode alone does not tell.
 */
enum {
	KIND_OTHERS = 0xe0,
	KIND_RNR = KIND_OTHERS,	 /* of RC; then of XRC */
	KIND_NAK = KIND_RNR + 2, /* NAK_CODES each of RC and XRC */
	NAK_CODES = 5,		 /* the codes of wire.h, and all others as the last */
	KIND_MAD = KIND_NAK + 2 * NAK_CODES,
	MAD_KINDS = 12, /* attributes 0x10 to 0x1a, and all others as the last */
	KIND_END = KIND_MAD + MAD_KINDS
};
_Static_assert((u32)KIND_END <= (u32)LAB_KINDS_MAX, "in the set");

static const char *const nak_name[NAK_CODES] = { "sequence", "invalid_request", "remote_access",
						 "remote_operation", "other" };
static const char *const mad_name[MAD_KINDS] = { "req",	     "mra",  "rej",  "rep",
						 "rtu",	     "dreq", "drep", "sidr_req",
						 "sidr_rep", "lap",  "apr",  "other" };

/* Offsets in a MAD's header. */
enum { MAD_CLASS = 1, MAD_ATTRIBUTE = 16, MAD_HEADER = 24, MAD_CLASS_CM = 7, MAD_CM_FIRST = 0x10 };

static u32 kind_of_mad(const struct packet *p)
{
	u8 header[MAD_HEADER];
	u32 attribute;

	if (p->payload_len < sizeof(header))
		return KIND_MAD + MAD_KINDS - 1;
	packet_copy_payload(p, 0, header, sizeof(header));
	attribute = (u32)header[MAD_ATTRIBUTE] << 8 | header[MAD_ATTRIBUTE + 1];
	if (header[MAD_CLASS] != MAD_CLASS_CM || attribute < MAD_CM_FIRST ||
	    attribute >= MAD_CM_FIRST + MAD_KINDS - 1)
		return KIND_MAD + MAD_KINDS - 1;
	return KIND_MAD + attribute - MAD_CM_FIRST;
}

u32 lab_kind_of(const struct packet *p)
{
	const u32 xrc = OPCODE_TRANSPORT(p->opcode) == XROCE_XRC;
	const u32 code = p->syndrome & AETH_VALUE_MASK;

	if (OPCODE_TRANSPORT(p->opcode) == XROCE_UD && p->dest_qpn == XROCE_CM_QPN)
		return kind_of_mad(p);
	if (!(p->flags & OP_ACK))
		return p->opcode;
	switch (p->syndrome & AETH_CLASS_MASK) {
	case AETH_RNR_NAK:
		return KIND_RNR + xrc;
	case AETH_NAK:
		return KIND_NAK + xrc * NAK_CODES + (code < NAK_CODES - 1 ? code : NAK_CODES - 1);
	default:
		return p->opcode;
	}
}

bool lab_kind_is_mad(u32 kind)
{
	return kind >= KIND_MAD && kind < KIND_END;
}

/* "RC READ_RESPONSE_FIRST": lower case, with dots; the shorter word for an acknowledgement. */
static void name_of_opcode(u8 opcode, char name[LAB_KIND_NAME])
{
	char text[LAB_KIND_NAME];
	const char *at;

	snprintf(text, sizeof(text), "%s", opcode_name(opcode));
	if ((at = strstr(text, "CMP_SWAP")) || (at = strstr(text, "FETCH_ADD"))) {
		const bool swap = *at == 'C';

		snprintf(name, LAB_KIND_NAME, "%.*s.atomic.%s",
			 (int)min_u32(strchr(text, ' ') ? (u32)(strchr(text, ' ') - text) : 0, 8),
			 text, swap ? "cmp_swap" : "fetch_add");
	} else {
		at = strstr(text, "ACKNOWLEDGE");
		snprintf(name, LAB_KIND_NAME, "%.*s%s", at ? (int)(at - text) : LAB_KIND_NAME - 1,
			 text, at ? "ack" : "");
		for (char *c = name; *c; c++)
			if (*c == ' ' || *c == '_')
				*c = '.';
	}
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

void lab_kind_name(u32 kind, char name[LAB_KIND_NAME])
{
	if (lab_kind_is_mad(kind))
		snprintf(name, LAB_KIND_NAME, "cm.%s", mad_name[kind - KIND_MAD]);
	else if (kind >= KIND_NAK && kind < KIND_MAD)
		snprintf(name, LAB_KIND_NAME, "%s.nak.%s",
			 kind < KIND_NAK + NAK_CODES ? "rc" : "xrc",
			 nak_name[(kind - KIND_NAK) % NAK_CODES]);
	else if (kind >= KIND_RNR && kind < KIND_NAK)
		snprintf(name, LAB_KIND_NAME, "%s.rnr", kind == KIND_RNR ? "rc" : "xrc");
	else
		name_of_opcode((u8)kind, name);
}

/* Returns whether the kind has a name that rules can use. */
static bool is_known(u32 kind)
{
	return kind >= KIND_OTHERS ? kind < KIND_END : opcode_flags((u8)kind) & OP_VALID;
}

bool lab_kinds_add(struct lab_kinds *k, const char *name, size_t len)
{
	bool found = false;

	for (u32 kind = 0; kind < LAB_KINDS_MAX; kind++) {
		char known[LAB_KIND_NAME];

		if (!is_known(kind))
			continue;
		lab_kind_name(kind, known);
		if (strncmp(known, name, len) || (known[len] && known[len] != '.'))
			continue;
		k->bits[kind / 64] |= 1ull << kind % 64;
		found = true;
	}
	return found && len;
}
