#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "manager/io/store_file.h"
#include "manager/tls/certificate_pair.h"

/// Keys that the server makes for itself, in the folder `tls` beside the journal: the one in use,
/// and the next one, whose pin partners can add in time (RFC 7858 §4.2). For pool threads.
namespace pando::manager {

struct OwnKeys {
  CertificatePair current;
  CertificateFacts next;
};

/// Reads both, and makes one that is not there, durably. A file that is there and cannot be used is
/// an error and stays, because partners may have its pin.
Result<OwnKeys> open_own_keys(Files& files, const std::string& journal, std::uint64_t now);

/// Puts the next key into use for good, and makes another next one. After a crash either key is in
/// use, and a next one is made at the start.
Result<OwnKeys> roll_own_keys(Files& files, const std::string& journal, std::uint64_t now);

}  // namespace pando::manager
