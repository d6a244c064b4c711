#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

/// The process around a program of the operator that judges a zone: `pando-manager --verifier USER
/// COUNT NAME=VALUE... PROGRAM ARGUMENT...`, with COUNT variables for the program's environment. Its
/// own environment is empty. It gives up the rights that it was started with, starts the program,
/// and leaves no process behind. Descriptors:
///
///     0  the zone's text, for the program     1, 2  the program's output
///     3  a packet socket: this process tells how the program has ended, in one packet. When the
///        other side closes, whatever the program has started is killed.
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

/// Body of the process; `words` stand behind `--verifier`. An empty USER stays this process's user:
/// then Landlock keeps the program from writing files, or it is not started. Gives the exit code.
int run_verifier(const std::vector<std::string>& words);

}  // namespace pando::manager
