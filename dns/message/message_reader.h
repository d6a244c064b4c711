#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message_header.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// One record of a message without its owner. RDATA stays in the message and may hold compressed
/// names: use decompress_rdata(). `rdata_offset + rdata_length` is inside the message.
struct RecordFields {
  bool owner_is_root = false;
  RRType type{};
  RRClass rr_class{};
  std::uint32_t ttl = 0;
  std::size_t rdata_offset = 0;
  std::uint16_t rdata_length = 0;
  std::size_t offset = 0;  ///< of the owner name: TSIG signs the message up to here
};

/// One record of a message.
struct MessageRecord : RecordFields {
  Name owner;
};

/// Walks a message front to back; never reads outside it, never loops (RFC 1035 §4.1.4: pointers
/// must go backwards here). Each step succeeds or leaves the reader's position unchanged. The
/// caller takes the numbers of questions and records from the header.
class MessageReader {
 public:
  explicit MessageReader(ByteView message) noexcept : message_(message) {}
  Result<Header> header();  ///< first call; kTruncated when shorter than 12 octets
  /// Takes the place of header() for a caller that has decoded it.
  void skip_header() noexcept { at_ = kHeaderOctets; }
  Result<Question> question();
  /// question() into an object that the caller has: a name has 256 octets.
  Status question(Question& question);
  Result<MessageRecord> record();
  /// record() for a caller that needs no owner: a name has 256 octets.
  Status record(RecordFields& record);
  [[nodiscard]] std::size_t offset() const noexcept { return at_; }
  [[nodiscard]] bool at_end() const noexcept { return at_ == message_.size(); }
  [[nodiscard]] ByteView message() const noexcept { return message_; }

 private:
  Status read_name(std::size_t& at, Name& name) const;
  Status read_compressed_name(std::size_t& at, Name& name) const;
  Status read_fields(std::size_t at, RecordFields& record);

  ByteView message_;
  std::size_t at_ = 0;
};

/// Reads a possibly compressed name at `at` and moves `at` past the name (RFC 1035 §4.1.4).
Result<Name> read_name(ByteView message, std::size_t& at);

}  // namespace pando::dns
