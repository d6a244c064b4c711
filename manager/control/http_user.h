#pragma once

#include "base/result.h"
#include "config/settings/settings.h"
#include "ipc/control.h"

namespace pando::manager {

/// Whether the user of pando-http may make this request, which changes something. A fault in that
/// program must not change more than the keys of `http.keys` may: records, NOTIFY and transfers of
/// their zones, and for a key of an administrator also which zones there are. A zone to be added has
/// only a name, content or primaries; it gets the template `http.template`. kDenied, kInvalid.
Status restrict_http_user(const config::Http& http, ipc::ControlRequest& request);

}  // namespace pando::manager
