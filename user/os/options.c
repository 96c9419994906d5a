/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "options.h"

#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xroce/abi.h>

#include "complain.h"

static const char *const tx_words[] = {
	[TX_AUTO] = "auto", [TX_XSK] = "xsk", [TX_TAP] = "tap",
	[TX_LIVE] = "live", [TX_GSO] = "gso", NULL,
};
static const char *const xdp_words[] = {
	[XDP_CHOICE_AUTO] = "auto",
	[XDP_CHOICE_NATIVE] = "native",
	[XDP_CHOICE_GENERIC] = "generic",
	NULL,
};
static const char *const attach_words[] = {
	[ATTACH_AUTO] = "auto",
	[ATTACH_DISPATCHER] = "dispatcher",
	[ATTACH_EXCLUSIVE] = "exclusive",
	NULL,
};
static const char *const share_words[] = {
	[SHARE_AUTO] = "auto",
	[SHARE_NEVER] = "never",
	[SHARE_ALWAYS] = "always",
	NULL,
};
static const char *const port_words[] = {
	[PORT_AUTO] = "auto",
	[PORT_XDP] = "xdp",
	[PORT_SOCKETS] = "sockets",
	NULL,
};
static const char *const ecn_words[] = { "0", "1", NULL };
static const char *const off_words[] = {
	"reorder", "selective", "rto", "window", "credits", "flow", NULL,
};
/* In the order of off_words. */
static const u32 off_bits[] = {
	ENGINE_NO_REORDER, ENGINE_NO_SELECTIVE, ENGINE_NO_ADAPTIVE_RTO,
	ENGINE_NO_CWND,	   ENGINE_NO_CREDITS,	ENGINE_NO_PROBED_CREDITS,
};
_Static_assert(ARRAY_SIZE(off_words) == ARRAY_SIZE(off_bits) + 1, "a bit for each word");

const struct option_spec option_table[NUM_OPTIONS] = {
	[OPTION_SPIN_US] = {
		"XROCE_SPIN_US", "spin", "US", OPTION_IS_NUMBER,
		.least = 0, .most = 1000000, .fallback = 100,
		.help = "spin at most US microseconds after work in a worker thread",
	},
	[OPTION_YIELD] = {
		"XROCE_YIELD", "yield", "POLLS", OPTION_IS_NUMBER,
		.least = 0, .most = 1000000, .fallback = 0,
		.help = "yield the CPU after POLLS empty polls in a row; 0: never",
	},
	[OPTION_VECTOR_CPUS] = {
		"XROCE_VECTOR_CPUS", "cpus", "LIST", OPTION_IS_CPUS,
		.most = CPU_SETSIZE - 1,
		.help = "run the worker thread of each shard on a CPU of LIST",
	},
	[OPTION_SHARDS] = {
		"XROCE_SHARDS", "shards", "N", OPTION_IS_NUMBER,
		.least = 1, .most = XROCE_MAX_SHARD, .fallback = XROCE_MAX_SHARD,
		.help = "use at most N shards (an engine and a worker thread each)",
	},
	[OPTION_TX] = {
		"XROCE_TX", "tx", "WAY", OPTION_IS_WORD, tx_words,
		.help = "send frames by WAY",
	},
	[OPTION_XDP] = {
		"XROCE_XDP", "xdp", "MODE", OPTION_IS_WORD, xdp_words,
		.help = "attach XDP in MODE",
	},
	[OPTION_ATTACH] = {
		"XROCE_ATTACH", "attach", "HOW", OPTION_IS_WORD, attach_words,
		.help = "share the XDP hook with other XDP programs, or not",
	},
	[OPTION_SHARE] = {
		"XROCE_SHARE", "share", "HOW", OPTION_IS_WORD, share_words,
		.help = "share the interface with other processes by its broker",
	},
	[OPTION_PORT] = {
		"XROCE_PORT", "port", "KIND", OPTION_IS_WORD, port_words,
		.help = "use an XDP program, UDP sockets, which need no privilege, or\n"
			"the better of these that works here",
	},
	[OPTION_PKEY] = {
		"XROCE_PKEY", "pkey", "LIST", OPTION_IS_PKEYS,
		.help = "set P_Keys after 0xffff for an interface without a broker",
	},
	[OPTION_OFF] = {
		"XROCE_OFF", NULL, "PARTS", OPTION_IS_WORDS, off_words,
		.help = "turn off PARTS of the transport",
	},
	[OPTION_ECN] = {
		"XROCE_ECN", NULL, "1", OPTION_IS_WORD, ecn_words,
		.help = "send packets as ECN-capable",
	},
	[OPTION_QUIET] = {
		"XROCE_QUIET", NULL, "1", OPTION_IS_FLAG,
		.help = "print no line about a slower way to send or to attach",
	},
	[OPTION_DEBUG] = {
		"XROCE_DEBUG", NULL, "1", OPTION_IS_FLAG,
		.help = "print libbpf's messages and the verifier's log",
	},
	[OPTION_COUNTERS] = {
		"XROCE_COUNTERS", NULL, "1", OPTION_IS_FLAG,
		.help = "print a line of counters when the program closes an interface",
	},
	[OPTION_PIN] = {
		"XROCE_PIN", NULL, "DIR", OPTION_IS_PATH,
		.help = "pin maps in DIR of a BPF file system",
	},
	[OPTION_TCP_PORTS] = {
		"XROCE_TCP_PORTS", NULL, "LIST", OPTION_IS_PORTS,
		.least = 1, .most = UINT16_MAX,
		.help = "leave connections to these ports to TCP (librspreload)",
	},
};

/* ---- text ---- */

/* Parses digits, up to a number of most. Returns the text after them, or NULL if invalid. */
static const char *option_number_end(const char *text, u32 most, u32 *out)
{
	u64 n = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++) {
		n = 10 * n + (u64)(*text - '0');
		if (n > most)
			return NULL;
	}
	*out = (u32)n;
	return text;
}

static bool option_parse_number(const struct option_spec *spec, const char *text, u32 *out)
{
	const char *end = option_number_end(text, spec->most, out);

	return end && !*end && *out >= spec->least;
}

/* Returns the index of the word of this length, or -1. */
static int option_word(const struct option_spec *spec, const char *text, size_t len)
{
	for (int i = 0; spec->words[i]; i++)
		if (strlen(spec->words[i]) == len && !memcmp(spec->words[i], text, len))
			return i;
	return -1;
}

static bool option_words_are_valid(const struct option_spec *spec, const char *text)
{
	while (*text) {
		const size_t len = strcspn(text, ",");

		if (len && option_word(spec, text, len) < 0)
			return false;
		text += len + (text[len] == ',');
	}
	return true;
}

/* Numbers, separated by commas. */
static bool option_list_is_valid(const struct option_spec *spec, const char *text)
{
	u32 n;

	do {
		text = option_number_end(text, spec->most, &n);
	} while (text && n >= spec->least && *text++ == ',');
	return text && n >= spec->least && !text[-1];
}

int option_add_pkey(struct pkey_table *pkeys, const char *text, size_t len)
{
	char number[8], *end;
	unsigned long n;

	if (len >= sizeof(number) || *text < '0' || *text > '9')
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = 0;
	n = strtoul(number, &end, 0);
	if (*end || n > UINT16_MAX)
		return -EINVAL;
	return n == ROCE_DEFAULT_PKEY ? 0 : pkey_table_add(pkeys, (u16)n);
}

static bool option_pkeys_are_valid(const char *text, struct pkey_table *pkeys)
{
	*pkeys = PKEY_TABLE_DEFAULT;
	for (;; text++) {
		const size_t len = strcspn(text, ",");

		if (option_add_pkey(pkeys, text, len))
			return false;
		text += len;
		if (!*text)
			return true;
	}
}

bool option_is_valid(const struct option_spec *spec, const char *text)
{
	struct pkey_table pkeys;
	u32 n;

	switch (spec->kind) {
	case OPTION_IS_NUMBER:
		return option_parse_number(spec, text, &n);
	case OPTION_IS_WORD:
		return option_word(spec, text, strlen(text)) >= 0;
	case OPTION_IS_WORDS:
		return option_words_are_valid(spec, text);
	case OPTION_IS_CPUS:
	case OPTION_IS_PORTS:
		return option_list_is_valid(spec, text);
	case OPTION_IS_PKEYS:
		return option_pkeys_are_valid(text, &pkeys);
	case OPTION_IS_FLAG:
		return true;
	case OPTION_IS_PATH:
		return *text == '/' && strlen(text) < PATH_MAX;
	}
	return false;
}

char *option_wants(const struct option_spec *spec, char *text, size_t n)
{
	size_t used = 0;

	if (spec->kind == OPTION_IS_NUMBER)
		snprintf(text, n, "a number from %u to %u", spec->least, spec->most);
	else if (spec->kind == OPTION_IS_CPUS)
		snprintf(text, n, "a list of CPUs, such as 2,3");
	else if (spec->kind == OPTION_IS_PORTS)
		snprintf(text, n, "a list of ports, such as 22,443");
	else if (spec->kind == OPTION_IS_PKEYS)
		snprintf(text, n, "a P_Key list (0x8001,0x0002; at most %u)",
			 XROCE_MAX_PKEY - 1);
	else if (spec->kind == OPTION_IS_FLAG)
		snprintf(text, n, "1");
	else if (spec->kind == OPTION_IS_PATH)
		snprintf(text, n, "an absolute path");
	for (u32 i = 0; spec->words && spec->words[i] && used < n; i++)
		used += (size_t)snprintf(text + used, n - used, "%s%s",
					 !i ? "" : spec->words[i + 1] ? ", " : " or ",
					 spec->words[i]);
	return text;
}

/* ---- the environment ---- */

/* Returns the variable's text, or NULL if it is unset, empty, or invalid (reported once). */
static const char *option_text(enum option_id option)
{
	static _Atomic u32 said;
	const struct option_spec *spec = &option_table[option];
	const char *text = secure_getenv(spec->variable);
	const u32 bit = 1u << option;
	char wants[128];

	if (!text || !*text)
		return NULL;
	if (option_is_valid(spec, text))
		return text;
	if (!(atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit))
		complain("%s=%s is ignored: it is not %s", spec->variable, text,
			 option_wants(spec, wants, sizeof(wants)));
	return NULL;
}

bool options_are_inherited(const char *assignment)
{
	for (u32 i = 0; i < NUM_OPTIONS; i++) {
		const char *name = option_table[i].variable;
		const size_t len = strlen(name);

		if (i != OPTION_TCP_PORTS && !strncmp(assignment, name, len) &&
		    assignment[len] == '=' && assignment[len + 1])
			return option_text((enum option_id)i);
	}
	return true;
}

static u32 options_word(enum option_id option)
{
	const char *text = option_text(option);

	return text ? (u32)option_word(&option_table[option], text, strlen(text)) : 0;
}

enum tx_choice options_tx(void)
{
	return (enum tx_choice)options_word(OPTION_TX);
}

enum xdp_choice options_xdp(void)
{
	return (enum xdp_choice)options_word(OPTION_XDP);
}

enum attach_choice options_attach(void)
{
	return (enum attach_choice)options_word(OPTION_ATTACH);
}

enum share_choice options_share(void)
{
	return (enum share_choice)options_word(OPTION_SHARE);
}

enum port_choice options_port(void)
{
	return (enum port_choice)options_word(OPTION_PORT);
}

struct pkey_table options_pkeys(void)
{
	const char *text = option_text(OPTION_PKEY);
	struct pkey_table pkeys = PKEY_TABLE_DEFAULT;

	if (text)
		option_pkeys_are_valid(text, &pkeys);
	return pkeys;
}

u32 options_number(enum option_id option)
{
	const char *text = option_text(option);
	u32 n = option_table[option].fallback;

	if (text)
		option_parse_number(&option_table[option], text, &n);
	return n;
}

bool options_is_set(enum option_id option)
{
	return secure_getenv(option_table[option].variable) != NULL;
}

const char *options_pin(void)
{
	return option_text(OPTION_PIN);
}

int options_cpu(u32 n)
{
	const char *text = option_text(OPTION_VECTOR_CPUS);
	u32 cpu = 0;

	if (!text)
		return -1;
	for (u32 i = 0; i <= n; i++) {
		text = option_number_end(text, option_table[OPTION_VECTOR_CPUS].most, &cpu);
		if (i < n && *text++ != ',')
			return -1;
	}
	return (int)cpu;
}

static u32 options_parts_off(void)
{
	const char *text = option_text(OPTION_OFF);
	u32 bits = 0;

	while (text && *text) {
		const size_t len = strcspn(text, ",");

		if (len)
			bits |= off_bits[option_word(&option_table[OPTION_OFF], text, len)];
		text += len + (text[len] == ',');
	}
	return bits;
}

void options_engine(struct engine_config *config)
{
	config->disable = options_parts_off();
	config->ecn = options_word(OPTION_ECN);
}
