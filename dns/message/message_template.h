#pragma once

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "dns/message/message_writer.h"

namespace pando::dns {

/// Ends of the additional section's RRsets in a message being written, in order. A template may be
/// cut at these ends.
struct RRsetEnd {
  std::uint16_t size;     ///< octets of the message up to this end
  std::uint16_t records;  ///< records of the additional section up to this end
};

/// Authority and additional section of a message, reusable after other questions whose name ends
/// with the original question's name. Every compression pointer in the template leads to that name
/// or to a place after it. Those places have the same distance from the question's end in each
/// message, so that all pointers move by one number (RFC 1035 §4.1.4).
/// A view of a block of octets that make() gave. The block is whole in itself, so that its owner
/// can keep it beside the key by which it finds it: memory that is far away is waited for once.
class MessageTemplate {
 public:
  /// Larger messages give no template, since they would mostly not fit.
  static constexpr std::size_t kMaxOctets = 1400;

  /// Makes the block of a template from a finished message with one question and an empty answer
  /// section. The other sections may have only types without compressible names in the RDATA, NS
  /// and SOA. `ends` are the ends noted while the message was written; the first is the end of the
  /// authority section. The RRsets up to end number `required` may not be left out. Nullopt when
  /// the message is too large or of another form.
  static std::optional<Bytes> make(ByteView message, std::span<const RRsetEnd> ends,
                                   std::size_t required);
  /// `block`: octets that make() gave, or a copy of them, at an even address.
  explicit MessageTemplate(const std::uint8_t* block) noexcept : block_(block) {}

  enum class Put : std::uint8_t {
    kNothing,    ///< not even the authority section fits
    kTruncated,  ///< a required RRset did not fit: set TC
    kComplete,
  };
  /// Puts everything, or leaves out the last additional RRsets when they do not fit. The writer
  /// must hold only a question.
  Put put(MessageWriter& writer) const noexcept;

 private:
  /// Begins a block. Behind it stand the ends, places and values of the pointers in the body, and
  /// the body: the authority and additional sections.
  struct Head {
    std::uint16_t end_count;  ///< at least 1
    std::uint16_t pointer_count;
    std::uint16_t required;
    std::uint16_t question_name_octets;
    std::uint16_t authority_records;
  };
  static_assert(std::is_trivially_copyable_v<Head> && alignof(Head) == 2);
  static_assert(std::is_trivially_copyable_v<RRsetEnd> && alignof(RRsetEnd) == 2);

  const std::uint8_t* block_;
};

/// The NS RRset of a referral and its servers' addresses. Every cut of a zone with the same servers
/// can use them, if no server is at or below the cut. Owners of the NS records point to the cut
/// within the question; all other pointers lead to the zone's apex, where the question ends, or to
/// names of the NS records. So records may come between NS RRset and addresses (DS, RFC 4035
/// §3.1.4).
class ServerSetTemplate {
 public:
  /// Makes a template from a finished message: its question and the owner of its NS records, which
  /// are the authority section, are the apex of the zone. `ends`: see MessageTemplate; no address
  /// is required. Nullopt when the message is too large or of another form.
  static std::optional<ServerSetTemplate> from(ByteView message, std::span<const RRsetEnd> ends);

  /// Puts the NS RRset for `cut`, a part of the writer's question_name(); false when it does not
  /// fit.
  [[nodiscard]] bool put_servers(MessageWriter& writer, NameView cut) const noexcept;
  /// Puts the RRsets of addresses that fit. Only records without names that the message lacks may
  /// have been put since put_servers().
  void put_addresses(MessageWriter& writer) const noexcept;

  [[nodiscard]] bool has_addresses() const noexcept { return ends_.size() > 1; }
  /// Bytes on the heap.
  [[nodiscard]] std::size_t heap_bytes() const noexcept {
    return servers_.capacity() + addresses_.capacity() + ends_.capacity() * sizeof(RRsetEnd) +
           owners_.capacity() * sizeof(std::uint16_t) + server_pointers_.heap_bytes() +
           address_pointers_.heap_bytes();
  }

 private:
  [[nodiscard]] std::size_t longer(const MessageWriter& writer) const noexcept {
    return writer.question_name().size() - apex_octets_;
  }
  /// PointersInRecords and their memory.
  struct Pointers {
    std::vector<std::uint16_t> places;
    std::vector<std::uint16_t> values;

    [[nodiscard]] PointersInRecords view() const noexcept { return {places, values.data()}; }
    [[nodiscard]] std::size_t heap_bytes() const noexcept {
      return (places.capacity() + values.capacity()) * sizeof(std::uint16_t);
    }
  };

  bool take_servers(ByteView message, std::size_t start, std::size_t records);
  bool take_addresses(ByteView message, std::size_t start, std::size_t records);

  Bytes servers_;
  Bytes addresses_;
  std::vector<std::uint16_t> owners_;            // of the NS records: places in servers_
  Pointers server_pointers_;                     // others in servers_
  Pointers address_pointers_;                    // in addresses_
  std::vector<RRsetEnd> ends_;                   // sizes from the start of addresses_
  std::uint16_t apex_octets_ = 0;
};

}  // namespace pando::dns
