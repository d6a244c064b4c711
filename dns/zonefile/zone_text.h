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

/// Appends presentation format of a name's labels to `out`: all of it with a final dot when it ends
/// in the root, else (labels cut off a longer name) without. Escapes as to_text(NameView).
void append_labels_text(std::string& out, ByteView labels);

/// Appends `owner TTL IN type rdata` without a line end; the owner is written as it stands.
void append_record_text(std::string& out, std::string_view owner, RRType type, Ttl ttl,
                        ByteView rdata);

struct ZoneTextOptions {
  /// Owners below the origin are written relative to it, behind a $ORIGIN line; the apex is `@`.
  /// Names in RDATA are always absolute.
  bool relative_owners = false;
  std::size_t block_octets = 64 * 1024;  ///< about so much goes to the output at once
};

/// Writes a zone as a file that this project's scanner and BIND read back to the same wire data:
/// one record per line, TTL and class always there, no directive but $ORIGIN. Records come out in
/// the order of add().
class ZoneTextWriter {
 public:
  /// Takes a block of text; its error ends the writing.
  using Output = std::function<Status(std::string_view)>;

  ZoneTextWriter(NameView origin, ZoneTextOptions options, Output output);

  /// A line `; text`. Line ends and other controls in `text` become blanks.
  Status comment(std::string_view text);
  /// `rdata` is checked, uncompressed wire RDATA.
  Status add(NameView owner, RRType type, Ttl ttl, ByteView rdata);
  /// Hands out what is left; call it once, at the end.
  Status finish();

  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  void write_owner(NameView owner);
  Status hand_out_full_block();

  Name origin_;
  ZoneTextOptions options_;
  Output output_;
  std::string block_;
  std::string owner_text_;  // of the last owner, which often comes again
  Name owner_;
  std::uint64_t records_ = 0;
};

}  // namespace pando::dns
