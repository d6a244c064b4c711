#pragma once

#include <cstdint>
#include <string>

#include "ctl/signing/key_arguments.h"
#include "ctl/view/output.h"

namespace pando::ctl {

/// Arguments of `pandoctl zone sign`.
struct SignRequest {
  std::string file;
  std::string origin;  ///< empty: as the keys' files tell
  std::string out;     ///< empty: standard output
  KeyArguments keys;
  std::string inception;   ///< see time_from_text(); empty: an hour ago
  std::string expiration;  ///< empty: in 14 days, spread over the eight days before
  std::string serial = "keep";
  bool with_cds = false;
  bool is_nsec3 = false;
  bool is_opt_out = false;       ///< the next three are of NSEC3 alone
  std::uint32_t iterations = 0;  ///< at most kMaxSignedIterations
  std::string salt = "-";        ///< hexadecimal; "-": none
};

/// RFC 9276 §3.2: validators treat zones with more as unsigned, or fail.
inline constexpr std::uint32_t kMaxSignedIterations = 100;

/// Signs a zone file without a manager. Problems go to `err`, one per line.
int sign_zone_file(const SignRequest& request, Output output);

/// A time as RRSIG records have it (RFC 4034 §3.2): YYYYMMDDHHmmSS in UTC, or seconds since 1970.
Result<std::uint64_t> time_from_text(const std::string& text);

}  // namespace pando::ctl
