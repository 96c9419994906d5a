/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The opcode table of wire.h as user space looks it up: flags for the codec and the engine, names
 * for people.
 */
#include "packet.h"

static const u32 flags_of[256] = { ROCE_OPCODE_FLAGS };

/* The same rows once more for the names; the transport's prefix is what sets them apart. */
#define NAME_RC(name, low, flags) [OPCODE(XROCE_RC, low)] = "RC " #name,
#define NAME_UC(name, low, flags) [OPCODE(XROCE_UC, low)] = "UC " #name,
#define NAME_UD(name, low, flags) [OPCODE(XROCE_UD, low)] = "UD " #name,
#define NAME_XRC(name, low, flags) [OPCODE(XROCE_XRC, low)] = "XRC " #name,

static const char *const name_of[256] = {
	ROCE_SENDS_AND_WRITES(NAME_RC)
	ROCE_RELIABLE_REQUESTS(NAME_RC)
	ROCE_RESPONSES(NAME_RC)
	ROCE_SENDS_AND_WRITES(NAME_UC)
	ROCE_UD_SENDS(NAME_UD)
	ROCE_SENDS_AND_WRITES(NAME_XRC)
	ROCE_RELIABLE_REQUESTS(NAME_XRC)
	ROCE_RESPONSES(NAME_XRC)
	[OPCODE_CNP] = "CNP",
	[OPCODE_FLOW_PROBE] = "FLOW_PROBE",
	[OPCODE_FLOW_ANSWER] = "FLOW_ANSWER",
};

u32 opcode_flags(u8 opcode)
{
	return flags_of[opcode];
}

const char *opcode_name(u8 opcode)
{
	return name_of[opcode] ? name_of[opcode] : "unknown";
}
