#pragma once

#include <cstdint>
#include <string>

namespace pando::manager {

/// The name of a user of this host, from `passwd` alone, which is in the format of /etc/passwd.
/// Other sources (NSS) may ask the network, and the commit thread cannot wait for that. "uid NUMBER"
/// for a user that the file does not have.
[[nodiscard]] std::string local_user_name(std::uint32_t uid,
                                          const char* passwd = "/etc/passwd");

}  // namespace pando::manager
