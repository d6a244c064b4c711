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

/// HMAC algorithms of RFC 8945 §6; hmac-md5 only when the configuration allows it. MACs of the last
/// three are cut to 128, 192 and 256 bits. Requests then name the algorithm without the number, as
/// BIND, `dig` and `nsupdate` do; the name with the number is taken, too.
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
  /// Local policy of RFC 8945 §5.2.4: a MAC with fewer octets is refused with BADTRUNC; 0 = whole
  /// MACs only. A MAC below the larger of 10 octets and half of the hash is FORMERR anyway
  /// (§5.2.2.1).
  std::uint16_t least_mac_octets = 0;
};

/// The keys of one process, found by name. Keyed HMAC contexts are prepared once and duplicated.
/// The keyring must outlive its sessions and verdicts; several threads may call find().
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

/// The TSIG record at the end of a message; nullopt without one. kInvalid or kTruncated (FORMERR)
/// for a TSIG that is not last, repeated or malformed (RFC 8945 §5.1), or for an incomplete
/// message. Walks over the whole message, but does not expand its names.
Result<std::optional<TsigRecord>> find_tsig(ByteView message);

/// Result of checking a request's TSIG (RFC 8945 §5.2). `rcode` is NOERROR, or NOTAUTH with
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
  /// Server side: a session that signs responses to a verified request, or the verdict's error
  /// response (RFC 8945 §5.3.2). BADKEY and BADSIG get an empty MAC, BADTRUNC is signed, BADTIME is
  /// signed with the server's time in Other Data. FORMERR has no TSIG: sign() then adds nothing.
  static TsigSession for_response(const TsigVerdict& verdict);
  /// Client side: signs requests with `key`, then verifies the answers.
  static TsigSession for_request(const TsigKeyring::PreparedKey& key);

  TsigSession(TsigSession&&) noexcept;
  TsigSession& operator=(TsigSession&&) noexcept;
  ~TsigSession();

  /// Most octets that sign() appends; reserve them before rendering.
  [[nodiscard]] std::size_t overhead() const noexcept;
  /// Appends a TSIG record to the finished `message` (ARCOUNT is raised). The first message of a
  /// response covers the request's MAC; later ones cover only the previous MAC and timers.
  Status sign(Bytes& message, std::uint64_t now);
  /// Signs in place: `space` holds the message in its first `size` octets; returns the new size.
  Result<std::size_t> sign(std::span<std::uint8_t> space, std::size_t size, std::uint64_t now);
  /// Client side: checks one message of the response stream. kDenied with the reason, also for a
  /// TSIG error reported by the server; kInvalid and kTruncated as in find_tsig(). A refused
  /// message changes nothing, so that over UDP the next datagram may be tried (RFC 8945 §5.4).
  Status verify_response(ByteView message, std::uint64_t now);
  /// Client side, after the last message: an unsigned end of the stream is an error (RFC 8945
  /// §5.3.1).
  Status finish();

 private:
  TsigSession();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::dns
