#pragma once

#include "base/fd.h"
#include "base/result.h"
#include "config/settings/settings.h"

namespace pando::manager {

/// Certificates and key of `server.tls` as one file for pando-tls (ipc::TlsCertificate). No copy of
/// the key stays in this process's memory. An error names the file.
Result<Fd> read_server_certificate(const config::TlsPair& tls);

}  // namespace pando::manager
