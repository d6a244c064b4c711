#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "dns/zonefile/zone_scanner_lexer.h"

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

/// The two sides of a $GENERATE as tokens for one value at a time. The expanded text stays in place
/// until the same side's next value, so that a million values allocate nothing.
class GeneratedSides {
 public:
  Result<Token> owner(const Token& side, std::int64_t value);
  /// The RDATA side is one word, quoted when it has blanks; its expansion is read like the rest of
  /// a line.
  Result<std::span<const Token>> rdata(const Token& side, std::int64_t value);
  /// True when no token of the RDATA has an escape or quotes.
  [[nodiscard]] bool plain() const noexcept { return lexer_.plain(); }

 private:
  std::string owner_;
  std::string rdata_;
  RecordLexer lexer_;
};

}  // namespace pando::dns
