#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_writer.h"

namespace pando::dns {

/// Where RRsets of the additional section end in a message being written, in order: what a template
/// may be cut to.
struct RRsetEnd {
  std::uint16_t size;     ///< octets of the message up to there
  std::uint16_t records;  ///< of the additional section up to there
};

/// Authority and additional section of a message, to be put behind other questions whose name ends
/// with the name of the question it was written for. Every compression pointer in it leads to that
/// name or to something behind it, which stand at the same distance from the question's end in each
/// message: so they all move by one number (RFC 1035 §4.1.4).
class MessageTemplate {
 public:
  /// Larger messages make no template: they would mostly not fit anyway.
  static constexpr std::size_t kMaxOctets = 1400;

  /// From a finished message with one question, an empty answer section, and in the others only
  /// types without names in the RDATA that may be compressed, save NS. `ends` as they were while it
  /// was written, the first of them being the end of the authority section; those up to number
  /// `required` may not be left out. Nullopt when it is too large or of another form.
  static std::optional<MessageTemplate> from(ByteView message, std::span<const RRsetEnd> ends,
                                             std::size_t required);

  enum class Put : std::uint8_t {
    kNothing,    ///< not even the authority section fits
    kTruncated,  ///< a required RRset did not fit: TC is due
    kComplete,
  };
  /// Puts everything, or without the last additional RRsets when those do not fit. The writer has
  /// only a question yet.
  Put put(MessageWriter& writer) const noexcept;

 private:
  Bytes body_;                           // behind the question
  std::vector<std::uint16_t> pointers_;  // where in it, ascending
  std::vector<RRsetEnd> ends_;           // sizes from the body's start; never empty
  std::size_t required_ = 0;
  std::uint16_t question_name_octets_ = 0;
  std::uint16_t authority_records_ = 0;
};

}  // namespace pando::dns
