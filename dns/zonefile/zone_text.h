#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// Appends `owner TTL IN type rdata` without a line end; the text of the owner is copied unchanged.
void append_record_text(std::string& out, std::string_view owner, RRType type, Ttl ttl,
                        ByteView rdata);

struct ZoneTextOptions {
  /// Owners below the origin are written relative to it, after a $ORIGIN line; the apex is `@`.
  /// Names in RDATA are always absolute.
  bool relative_owners = false;
  std::size_t block_bytes = 64 * 1024;  ///< approximate size of one output call
};

/// Writes a zone as a file that this project's scanner and BIND read back to the same wire data.
/// One record per line, always with TTL and class, and no directive but $ORIGIN. Records keep the
/// order of add().
class ZoneTextWriter {
 public:
  /// Receives a block of text; a returned error ends the writing.
  using Output = std::function<Status(std::string_view)>;

  ZoneTextWriter(NameView origin, ZoneTextOptions options, Output output);

  /// Writes a line `; text`. Line ends and other controls in `text` become blanks.
  Status comment(std::string_view text);
  /// `rdata` is checked, uncompressed wire RDATA.
  Status add(NameView owner, RRType type, Ttl ttl, ByteView rdata);
  /// Outputs the remaining text; call once, at the end.
  Status finish();

  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  void write_owner(NameView owner);
  Status hand_out_full_block();

  Name origin_;
  ZoneTextOptions options_;
  Output output_;
  std::string block_;
  std::string owner_text_;  // of the last owner, which often repeats
  Name owner_;
  std::uint64_t records_ = 0;
};

}  // namespace pando::dns
