#pragma once

#include "base/result.h"

namespace pando::tls {

/// Takes every right from the process but to serve the sockets that it gets: it reads what strangers
/// send, and has the server's private key. After all files of libraries were read.
Status confine();

}  // namespace pando::tls
