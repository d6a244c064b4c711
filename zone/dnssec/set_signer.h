#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/dnssec/signing_key.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::zone {

/// The period of signatures, in seconds since 1970.
struct SignatureTimes {
  std::uint64_t inception = 0;
  std::uint64_t expiration = 0;  ///< the last second of the longest ones
  /// Signatures end in the last so many seconds before `expiration`, so that a zone that was signed
  /// at once is not renewed at once. 0: all end together.
  std::uint32_t spread = 0;

  /// The end of a set's signatures: always the same one for the same name and type.
  [[nodiscard]] std::uint64_t end_of(dns::NameView owner, dns::RRType type) const noexcept;
};

/// Defaults: 14 days, of which a renewal six days before the end leaves at least five to everybody.
/// The hour before `now` is for hosts whose clock is slow.
inline constexpr std::uint64_t kValiditySeconds = 14 * 86400;
inline constexpr std::uint32_t kSpreadSeconds = 8 * 86400;
inline constexpr std::uint64_t kInceptionLead = 3600;
[[nodiscard]] constexpr SignatureTimes usual_times(std::uint64_t now) noexcept {
  return {now - kInceptionLead, now + kValiditySeconds, kSpreadSeconds};
}

/// The sets that key-signing keys sign (RFC 7344 §4.1 for CDS and CDNSKEY).
[[nodiscard]] bool is_key_set(dns::RRType type) noexcept;

/// The keys that sign a zone. Each algorithm signs every set (RFC 4035 §2.2): its keys with the SEP
/// flag sign DNSKEY, CDS and CDNSKEY, the others all else. Keys of one kind alone sign everything.
class SigningKeys {
 public:
  /// kInvalid: no key, or one key twice.
  static Result<SigningKeys> make(std::vector<dns::SigningKey> keys);

  [[nodiscard]] const std::vector<dns::SigningKey>& all() const noexcept { return keys_; }
  [[nodiscard]] bool signs(const dns::SigningKey& key, dns::RRType type) const noexcept;

 private:
  explicit SigningKeys(std::vector<dns::SigningKey> keys) : keys_(std::move(keys)) {}
  [[nodiscard]] bool has_key(std::uint8_t algorithm, bool is_sep) const noexcept;
  std::vector<dns::SigningKey> keys_;
};

/// Makes the RRSIG records of sets. Of one thread.
class SetSigner {
 public:
  /// kUnsupported: OpenSSL does not sign with an algorithm of the keys.
  static Result<SetSigner> make(dns::NameView apex, const SigningKeys& keys,
                                const SignatureTimes& times);

  /// Signs a set of class IN with each key that signs its type (RFC 4034 §3.1). `rdatas` must be
  /// different, and are put in canonical order. `visit(ByteView rdata)` gets the RDATA of each
  /// RRSIG. False when OpenSSL fails.
  template <class Visit>
  [[nodiscard]] bool sign(dns::NameView owner, dns::RRType type, dns::Ttl ttl,
                          std::vector<Bytes>& rdatas, Visit&& visit) {
    begin(owner, type, ttl, rdatas);
    // RFC 9615 §2: below the apex, CDS and CDNSKEY are data of the zone like others.
    const bool by_key_signers = is_key_set(type) && owner == apex_.view();
    for (Signer& signer : signers_) {
      if (!(by_key_signers ? signer.signs_keys : signer.signs_data)) continue;
      if (!make_rrsig(signer, owner, rdatas)) return false;
      ++made_;
      visit(ByteView(rrsig_));
    }
    return true;
  }
  /// Number of signatures made.
  [[nodiscard]] std::uint64_t made() const noexcept { return made_; }
  /// The period of later signatures.
  void set_times(const SignatureTimes& times) noexcept { times_ = times; }

 private:
  struct Signer {
    dns::SignatureMaker maker;
    std::uint8_t algorithm;
    std::uint16_t tag;
    bool signs_keys;
    bool signs_data;
  };
  SetSigner(dns::NameView apex, const SignatureTimes& times)
      : apex_(dns::Name(apex).folded()), times_(times) {}
  void begin(dns::NameView owner, dns::RRType type, dns::Ttl ttl, std::vector<Bytes>& rdatas);
  [[nodiscard]] bool make_rrsig(Signer& signer, dns::NameView owner, std::span<const Bytes> rdatas);

  dns::Name apex_;
  SignatureTimes times_;
  std::vector<Signer> signers_;
  std::uint64_t made_ = 0;
  // of the set that is signed; kept for their memory
  Bytes rrsig_;
  Bytes octets_;
  dns::RRType type_{};
};

}  // namespace pando::zone
