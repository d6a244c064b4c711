#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

/// The supervisor process of a verifier program: `pando-manager --verifier USER COUNT NAME=VALUE...
/// PROGRAM ARGUMENT...`, with COUNT variables for the program's environment. The supervisor's own
/// environment is empty. It drops its rights, starts the program, and leaves none of the program's
/// processes running. Descriptors:
///
///     0  the zone's text, for the program     1, 2  the program's output
///     3  a packet socket: the supervisor reports how the program ended, in one packet. When the
///        other side closes, the program and its processes are killed.
namespace pando::manager {

/// How a program has ended.
struct VerifierEnd {
  enum class Kind : std::uint8_t {
    kExited,      ///< `value` is the exit status
    kSignalled,   ///< `value` is the signal
    kNotStarted,  ///< `reason` says why
  };
  Kind kind = Kind::kNotStarted;
  std::uint32_t value = 0;
  std::string reason{};
};
[[nodiscard]] Bytes encode(const VerifierEnd& end);
Result<VerifierEnd> decode_verifier_end(ByteView packet);

/// Body of the process; `words` follow `--verifier`. Returns the exit code. With an empty USER the
/// program has this process's user. Then Landlock must prevent it from writing files, or the
/// program is not started.
int run_verifier(const std::vector<std::string>& words);

}  // namespace pando::manager
