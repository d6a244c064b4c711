#pragma once

#include <vector>

#include "config/settings/settings.h"
#include "ipc/tls_messages.h"
#include "manager/tls/tls_material.h"

namespace pando::manager {

/// What clients' certificates must prove to be the remotes that rules name, in the order of
/// `remotes`. A remote whose authorities could not be read is left out: nobody can prove its name.
[[nodiscard]] std::vector<ipc::TlsDemand> demands_of(const config::Settings& settings,
                                                     const TlsMaterial& material);

}  // namespace pando::manager
