#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// HMAC algorithms of RFC 8945 §6; hmac-md5 only when the configuration allows it. The last three
/// have names of their own for MACs cut to 128, 192 and 256 bits.
enum class TsigAlgorithm : std::uint8_t {
  kMd5,
  kSha1,
  kSha224,
  kSha256,
  kSha384,
  kSha512,
  kSha256_128,
  kSha384_192,
  kSha512_256,
};

/// "hmac-sha256" and so on in any case, with or without a final dot; for MD5 also its wire name.
Result<TsigAlgorithm> tsig_algorithm_from_text(std::string_view text);
[[nodiscard]] std::string to_text(TsigAlgorithm algorithm);

struct TsigKey {
  Name name;
  TsigAlgorithm algorithm = TsigAlgorithm::kSha256;
  Bytes secret;
  /// Local policy of RFC 8945 §5.2.4: fewer octets of a MAC are refused with BADTRUNC; 0 = whole
  /// MACs only. Below the larger of 10 and half of the hash it is FORMERR anyway (§5.2.2.1).
  std::uint16_t least_mac_octets = 0;
};

/// The keys of one process; lookup by name. Keyed HMAC contexts are prepared once and duplicated.
/// Must outlive the sessions and verdicts made with it; find() may be called in several threads.
class TsigKeyring {
 public:
  TsigKeyring();
  ~TsigKeyring();
  TsigKeyring(TsigKeyring&&) noexcept;
  TsigKeyring& operator=(TsigKeyring&&) noexcept;
  Status add(TsigKey key);  ///< kExists for a second key of that name; kInvalid: no secret
  struct PreparedKey;
  [[nodiscard]] const PreparedKey* find(NameView name) const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// TSIG record of a message, decoded (RFC 8945 §4.2).
struct TsigRecord {
  Name key_name;
  Name algorithm_name;
  std::uint64_t time_signed = 0;
  std::uint16_t fudge = 300;
  Bytes mac;
  std::uint16_t original_id = 0;
  std::uint16_t error = 0;
  Bytes other;
  std::size_t offset = 0;  ///< of the record in the message
};

/// The TSIG record when the message ends with one; nullopt when it has none. kInvalid or kTruncated
/// (FORMERR) when a TSIG stands anywhere but last, twice, or is malformed (RFC 8945 §5.1), or when
/// the message is not whole. Costs a walk over the message; the names in it are not expanded.
Result<std::optional<TsigRecord>> find_tsig(ByteView message);

/// What checking a request's TSIG gave (RFC 8945 §5.2). `rcode` is NOERROR, or NOTAUTH with
/// `tsig_error` BADKEY, BADSIG, BADTIME or BADTRUNC, or FORMERR.
struct TsigVerdict {
  Rcode rcode = Rcode::kNoError;
  Rcode tsig_error = Rcode::kNoError;
  const TsigKeyring::PreparedKey* key = nullptr;  ///< the key that matched, also for BADTIME
  TsigRecord record;
};

/// One signed exchange or stream: remembers the request's MAC and, on streams, the running digest
/// (RFC 8945 §5.3.1; up to 99 unsigned messages between signed ones are accepted when verifying).
class TsigSession {
 public:
  /// Server side: verifies a request against the keyring at `now` (seconds since 1970).
  static TsigVerdict verify_request(ByteView message, const TsigRecord& record,
                                    const TsigKeyring& keys, std::uint64_t now);
  /// Server side: a session that signs responses to a verified request, or the error response that
  /// the verdict asks for (RFC 8945 §5.3.2): BADKEY and BADSIG with an empty MAC, BADTRUNC signed,
  /// BADTIME signed with our time in Other Data, FORMERR without a TSIG: sign() then adds nothing.
  static TsigSession for_response(const TsigVerdict& verdict);
  /// Client side: signs requests with `key`, then verifies the answers.
  static TsigSession for_request(const TsigKeyring::PreparedKey& key);

  TsigSession(TsigSession&&) noexcept;
  TsigSession& operator=(TsigSession&&) noexcept;
  ~TsigSession();

  /// Octets sign() will append at most; reserve them before rendering.
  [[nodiscard]] std::size_t overhead() const noexcept;
  /// Appends a TSIG record to the finished `message` (ARCOUNT is raised). First message of a
  /// response covers the request's MAC, later ones the previous MAC and timers only.
  Status sign(Bytes& message, std::uint64_t now);
  /// The same in place: `space` holds the message in its first `size` octets; returns the new size.
  Result<std::size_t> sign(std::span<std::uint8_t> space, std::size_t size, std::uint64_t now);
  /// Client side: checks one message of the response stream. kDenied with the reason, also when the
  /// server reports a TSIG error; kInvalid and kTruncated as find_tsig(). A refused message changes
  /// nothing, so over UDP the next datagram may be tried (RFC 8945 §5.4).
  Status verify_response(ByteView message, std::uint64_t now);
  /// Client side, after the last message: an unsigned tail is an error (RFC 8945 §5.3.1).
  Status finish();

 private:
  TsigSession();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::dns
