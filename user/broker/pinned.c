/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "../client/attach_error.h"
#include "../os/xdp_maps.h"
#include "pinned.h"
#include "xroce.skel.h"
#include "xroce_broker.skel.h"

int pinned_begin(struct broker *b)
{
	int err;

	if (b->options.udp && b->options.pin)
		attach_complain(&b->dev, "with UDP sockets there are no BPF maps to pin");
	if (!b->options.pin || b->options.udp) {
		pins_sweep(PIN_DIR);
		return 0;
	}
	err = pins_begin(&b->pins, b->options.pin, &b->dev, "broker", b->options.pin_group);
	if (!err) {
		err = pin_maps(&b->pins, &b->pins.own, b->mux.bpf->obj, readonly_map_is_brokers);
		if (err) {
			attach_failed(&b->dev, "pin the maps", err);
			pins_end(&b->pins);
		}
	}
	/* the process that started a broker on demand needs a port, with or without pins */
	return b->options.while_used ? 0 : err;
}

void pinned_end(struct broker *b)
{
	pins_end(&b->pins);
}

/* Only reports an error: the client works without pins. */
void pinned_client(struct client *c, const struct instance *i)
{
	struct broker *b = c->broker;
	char name[sizeof(c->pin.name)];
	int err;

	if (b->pins.dir_fd < 0 || !i->bpf)
		return;
	snprintf(name, sizeof(name), "client-%u-%u", c->number, c->pid);
	err = pins_add(&b->pins, name, &c->pin);
	if (!err)
		err = pin_maps(&b->pins, &c->pin, i->bpf->obj, readonly_map_is);
	if (err)
		attach_failed(&b->dev, "pin a client's maps", err);
}

void pinned_client_end(struct client *c)
{
	pins_remove(&c->broker->pins, &c->pin);
}
