#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pando::dns {

/// `start-stop[/step]` of a $GENERATE, all within 0..2^31-1, as in BIND.
struct GenerateRange {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;

  static Result<GenerateRange> from_text(std::string_view text);
  [[nodiscard]] std::uint64_t count() const noexcept {
    return static_cast<std::uint64_t>((stop - start) / step) + 1;
  }
};

/// Writes one side of a $GENERATE for `value` to `out` (replaced). `$` is the value, `$$` a dollar
/// sign. `${offset[,width[,base]]}` is the value plus offset in base d, o, x, X or in nibbles n, N:
/// the labels of an ip6.arpa name, least significant first. Escapes stay.
Status expand_generate(std::string_view side, std::int64_t value, std::string& out);

}  // namespace pando::dns
