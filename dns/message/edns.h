#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message_reader.h"
#include "dns/types.h"

namespace pando::dns {

/// Option codes used here (IANA registry).
inline constexpr std::uint16_t kOptionNsid = 3, kOptionExpire = 9, kOptionCookie = 10,
                               kOptionKeepalive = 11, kOptionPadding = 12, kOptionEde = 15,
                               kOptionZoneVersion = 19;
inline constexpr std::size_t kOptionHeaderOctets = 4;  ///< OPTION-CODE, OPTION-LENGTH

/// EDNS(0) of a request (RFC 6891 §6.1).
struct Edns {
  std::uint16_t udp_payload = 512;
  std::uint8_t extended_rcode = 0;
  std::uint8_t version = 0;
  bool dnssec_ok = false;
  ByteView options;         ///< OPTION-CODE, OPTION-LENGTH, data ...; checked to be well formed
  std::uint32_t codes = 0;  ///< bit `code` is set for each present option code below 32
  ByteView cookie;          ///< data of the first COOKIE (RFC 7873 §5.2: others are ignored)

  /// True when the option `code`, one of the constants above, is present.
  [[nodiscard]] bool has(std::uint16_t code) const noexcept { return (codes >> code & 1U) != 0; }
};

/// Decodes an OPT record of `message`, its options in one pass. kInvalid when its owner is not the
/// root or options overrun. A version above 0 is returned, not refused: its options may have any
/// form and are not read.
Result<Edns> read_opt(ByteView message, const RecordFields& record);
/// read_opt() into an object that the caller has, and has not filled; false in place of an error.
[[nodiscard]] bool read_opt(ByteView message, const RecordFields& record, Edns& edns) noexcept;

/// Finds the first option `code` in checked options; nullopt when absent. For codes unknown to
/// has(), and for tests.
[[nodiscard]] std::optional<ByteView> find_option(ByteView options, std::uint16_t code) noexcept;

/// INFO-CODEs of extended DNS errors (RFC 8914 §4, IANA registry) that an authoritative server
/// sends.
enum class ExtendedError : std::uint16_t {
  kOther = 0,
  kStaleAnswer = 3,
  kNotReady = 14,
  kProhibited = 18,
  kNotAuthoritative = 20,
  kNotSupported = 21,
  kNetworkError = 23,
  kInvalidData = 24,
  kTooEarly = 26,
  kUnsupportedNsec3Iterations = 27,
  kInvalidQueryType = 30,
};

/// Composes the OPT record of a response (RFC 6891 §6.1.2) in its own memory, without heap:
///   OptBuilder opt(1232, Rcode::kNoError, request.dnssec_ok);
///   opt.add_nsid("ns1"); writer.put_raw_additional(opt.record());
/// An option that does not fit is left out; the record stays whole.
class OptBuilder {
 public:
  /// RFC 6891 §6.1.3: `rcode`'s upper eight bits go here, the lower four into the header.
  /// RFC 3225 §3: the DO bit is copied from the request.
  OptBuilder(std::uint16_t udp_payload, Rcode rcode, bool dnssec_ok) noexcept;

  /// Adds one option; false when it does not fit.
  bool add(std::uint16_t code, ByteView data) noexcept;
  bool add_nsid(std::string_view identity) noexcept;     ///< RFC 5001 §2.3
  bool add_cookie(ByteView client_and_server) noexcept;  ///< RFC 7873 §4
  bool add_extended_error(ExtendedError code,
                          std::string_view text = {}) noexcept;     ///< RFC 8914 §2
  bool add_keepalive(std::uint16_t hundred_milliseconds) noexcept;  ///< RFC 7828 §3.1, TCP only
  bool add_expire(std::uint32_t seconds) noexcept;                  ///< RFC 7314 §3.2
  /// RFC 9660 §2, TYPE 0: the serial of the zone whose name has `labels` labels (the root's 0).
  bool add_zone_version(std::uint8_t labels, Serial serial) noexcept;
  /// RFC 7830 §3: `octets` zeros, beside the option's header.
  bool add_padding(std::size_t octets) noexcept;

  /// The whole record in wire form; valid while the builder lives.
  [[nodiscard]] ByteView record() const noexcept { return {octets_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::uint8_t* begin_option(std::uint16_t code, std::size_t length) noexcept;

  static constexpr std::size_t kFixedOctets = 11;  // root owner, type, class, TTL, RDLENGTH
  static constexpr std::size_t kMaxOctets = 1024;  // NSID ≤ 255, cookie 40, EDE text
  std::size_t size_ = kFixedOctets;
  std::array<std::uint8_t, kMaxOctets> octets_;
};

}  // namespace pando::dns
