#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/rdata.h"
#include "dns/types.h"

namespace pando::dns {

inline constexpr std::size_t kHeaderOctets = 12;        // RFC 1035 §4.1.1
inline constexpr std::size_t kMaxMessageOctets = 65535;  // RFC 1035 §4.2.2

/// The fixed header (RFC 1035 §4.1.1, AD and CD from RFC 4035 §3.1.6).
struct Header {
  std::uint16_t id = 0;
  bool qr = false;
  Opcode opcode = Opcode::kQuery;
  bool aa = false, tc = false, rd = false, ra = false, ad = false, cd = false;
  std::uint8_t rcode = 0;  ///< the low four bits; EDNS has the rest
  std::uint16_t qdcount = 0, ancount = 0, nscount = 0, arcount = 0;
};

struct Question {
  Name name;
  RRType type{};
  RRClass rr_class{};
};

/// One record of a message; RDATA is still where it was and may hold compressed names.
struct MessageRecord {
  Name owner;
  RRType type{};
  RRClass rr_class{};
  std::uint32_t ttl = 0;
  std::size_t rdata_offset = 0;
  std::uint16_t rdata_length = 0;
  std::size_t offset = 0;  ///< of the owner name: TSIG signs the message up to here
};

/// Walks a message front to back; never reads outside it, never loops (RFC 1035 §4.1.4: pointers
/// must go backwards here).
class MessageReader {
 public:
  explicit MessageReader(ByteView message) noexcept : message_(message) {}
  Result<Header> header();          ///< first call; kTruncated when shorter than 12 octets
  Result<Question> question();
  Result<MessageRecord> record();
  [[nodiscard]] std::size_t offset() const noexcept { return at_; }
  [[nodiscard]] bool at_end() const noexcept { return at_ == message_.size(); }
  [[nodiscard]] ByteView message() const noexcept { return message_; }

 private:
  ByteView message_;
  std::size_t at_ = 0;
};

/// Reads a possibly compressed name at `at`, which is moved behind it (RFC 1035 §4.1.4).
Result<Name> read_name(ByteView message, std::size_t& at);

/// One RRset (or its signatures) to be written: `rdata(i)` gives uncompressed RDATA.
/// The writer needs only this much, so it knows nothing of the store.
enum class Section : std::uint8_t { kAnswer, kAuthority, kAdditional };

/// Builds one message in caller's memory. Names are compressed wherever RFC 3597 §4 lets them, with
/// a small open-addressing table of (hash, offset) into the message itself. Limits: the space given.
class MessageWriter {
 public:
  /// `space` is at least 12 octets; `limit` ≤ space.size() is the largest message to build and may
  /// be lowered by reserve() for the OPT and TSIG records to come.
  MessageWriter(std::span<std::uint8_t> space, std::size_t limit) noexcept;

  void put_header(const Header& header) noexcept;  ///< counts are filled in by finish()
  [[nodiscard]] bool put_question(NameView name, RRType type, RRClass rr_class) noexcept;

  /// A point to roll back to; taken before an RRset, so that truncation falls on RRset borders.
  struct Mark {
    std::size_t size;
    std::array<std::uint16_t, 4> counts;
    std::uint16_t table_used;
  };
  [[nodiscard]] Mark mark() const noexcept;
  void roll_back(const Mark& mark) noexcept;

  /// Appends one record; false when it does not fit (the message is then as it was). With `prefix`
  /// the RDATA is prefix + rdata taken as they are (the store keeps RRSIGs without "type covered").
  [[nodiscard]] bool put_record(Section section, NameView owner, RRType type, RRClass rr_class,
                                std::uint32_t ttl, ByteView rdata,
                                ByteView prefix = {}) noexcept;

  /// Appends octets as they are (OPT, TSIG) and counts one additional record.
  [[nodiscard]] bool put_raw_additional(ByteView record) noexcept;

  void reserve(std::size_t octets) noexcept { limit_ -= octets; }
  void release(std::size_t octets) noexcept { limit_ += octets; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t room() const noexcept { return limit_ - size_; }
  void set_rcode(Rcode rcode) noexcept;
  void set_tc() noexcept;
  void set_aa(bool aa) noexcept;
  /// Writes the counts; the finished message is space[0, size()).
  ByteView finish() noexcept;

 private:
  bool put_name(NameView name, bool compress) noexcept;

  std::span<std::uint8_t> space_;
  std::size_t limit_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, 4> counts_{};
  struct Entry {
    std::uint16_t hash;
    std::uint16_t offset;  // 0 = free: offset 0 is the header, never a name
  };
  static constexpr std::size_t kTableSize = 1024;  // sized by the helper's measurement
  std::array<Entry, kTableSize> table_;
  std::uint16_t table_used_ = 0;
};

/// EDNS(0) as it stands in a request (RFC 6891 §6.1).
struct Edns {
  std::uint16_t udp_payload = 512;
  std::uint8_t extended_rcode = 0;
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  ByteView options;  ///< OPTION-CODE, OPTION-LENGTH, data ...; checked to be well formed
};

/// Option codes used here (IANA registry).
inline constexpr std::uint16_t kOptionNsid = 3, kOptionExpire = 9, kOptionCookie = 10,
                               kOptionKeepalive = 11, kOptionPadding = 12, kOptionEde = 15,
                               kOptionZoneVersion = 19;

/// Decodes an OPT record of `message`. kInvalid when its owner is not the root or options overrun.
Result<Edns> read_opt(ByteView message, const MessageRecord& record);

/// Finds the first option `code` in checked options; nullopt when absent.
[[nodiscard]] std::optional<ByteView> find_option(ByteView options, std::uint16_t code) noexcept;

}  // namespace pando::dns
