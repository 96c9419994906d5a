/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private calls for our librdmacm: xroce_cm.h. */
#include "objects.h"
#include "xroce_cm.h"

_Static_assert((int)XROCE_CM_IPV4 == ASK_IPV4 && (int)XROCE_CM_IPV6 == ASK_IPV6, "ask.h");

EXPORT struct ibv_qp *xroce_create_qp1(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return create_qp1(pd, attr);
}

EXPORT int xroce_cm_place(struct ibv_context *context, uint32_t *first_id, uint32_t *num_ids)
{
	struct port *port;
	int err = context_port(to_vcontext(context), &port);

	if (!err)
		port_cm_place(port, first_id, num_ids);
	return err;
}

/* Returns 0 or EINVAL. A specific address implies its family. */
static int cm_service_convert(const struct xroce_cm_service *in, struct ask_service *out)
{
	static const u8 any[16], mapped[12] = { [10] = 0xff, 0xff };
	const bool is_any = !memcmp(in->address.raw, any, sizeof(any));
	const u32 own = memcmp(in->address.raw, mapped, sizeof(mapped)) ? ASK_IPV6 : ASK_IPV4;

	*out = (struct ask_service){ .id = in->id, .families = is_any ? in->families : own };
	memcpy(out->address, in->address.raw, sizeof(out->address));
	if (is_any)
		return in->families && !(in->families & ~(ASK_IPV4 | ASK_IPV6)) ? 0 : EINVAL;
	return !in->families || in->families == own ? 0 : EINVAL;
}

/* Common part of the four service calls. Returns 0 or a positive errno. */
static int cm_call(struct ibv_context *context, const struct xroce_cm_service *service,
		   int call(struct port *port, const struct ask_service *service))
{
	struct ask_service s;
	struct port *port;
	int err = cm_service_convert(service, &s);

	if (!err)
		err = context_port(to_vcontext(context), &port);
	return err ? err : -call(port, &s);
}

EXPORT int xroce_cm_bind(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_bind);
}

EXPORT int xroce_cm_unbind(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_unbind);
}

EXPORT int xroce_cm_show(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_show_listener);
}

EXPORT int xroce_cm_hide(struct ibv_context *context, const struct xroce_cm_service *service)
{
	return cm_call(context, service, port_hide_listener);
}

EXPORT void xroce_cm_count(struct ibv_context *context, enum xroce_cm_count what)
{
	struct port *port;

	if (context_port(to_vcontext(context), &port))
		return;
	port_count_drop(port, what == XROCE_CM_SILENT ? XROCE_DROP_mad_silent :
							XROCE_DROP_mad_half_open);
}

EXPORT int xroce_device_ifindex(struct ibv_device *device)
{
	return device_is_known(device) ? (int)to_vdevice(device)->nd.ifindex : 0;
}
