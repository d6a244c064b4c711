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

/// The sets that a key of a zone stands in and signs.
struct KeyUse {
  bool is_published = false;  ///< in DNSKEY
  bool signs_keys = false;    ///< DNSKEY, CDS and CDNSKEY
  bool signs_data = false;    ///< all else
  bool has_ds = false;        ///< the parent is to have a DS record of it (CDS and CDNSKEY)
  /// Signatures of data that it made stay until they are to be renewed.
  bool keeps_signatures = false;
  /// The key comes or goes: it may be in the served DNSKEY set, or not.
  bool is_rolled = false;
  bool operator==(const KeyUse&) const = default;
};

struct KeyKind {
  std::uint8_t algorithm = 0;
  bool is_sep = false;
};

/// The uses of a zone's keys, in the same order, when no others follow them. Each algorithm signs
/// every set (RFC 4035 §2.2): its keys with the SEP flag sign DNSKEY, CDS and CDNSKEY, the others
/// all else. Keys of one kind alone sign everything.
[[nodiscard]] std::vector<KeyUse> usual_uses(std::span<const KeyKind> keys);

/// The keys of a zone that is signed.
class SigningKeys {
 public:
  /// With usual_uses(). kInvalid: no key, or one key twice.
  static Result<SigningKeys> make(std::vector<dns::SigningKey> keys);
  /// The same keys with `uses`, in the same order, while others follow them: some keys may be
  /// unpublished, or sign nothing.
  [[nodiscard]] SigningKeys rolling(std::vector<KeyUse> uses) const {
    return SigningKeys(keys_, std::move(uses), true);
  }

  [[nodiscard]] const std::vector<dns::SigningKey>& all() const noexcept { return keys_; }
  /// Of a key of all().
  [[nodiscard]] const KeyUse& use_of(const dns::SigningKey& key) const noexcept;
  [[nodiscard]] bool signs(const dns::SigningKey& key, dns::RRType type) const noexcept {
    const KeyUse& use = use_of(key);
    return is_key_set(type) ? use.signs_keys : use.signs_data;
  }
  /// Keys follow others: what the zone has of both may be in between.
  [[nodiscard]] bool is_rolling() const noexcept { return is_rolling_; }

 private:
  SigningKeys(std::vector<dns::SigningKey> keys, std::vector<KeyUse> uses, bool is_rolling)
      : keys_(std::move(keys)), uses_(std::move(uses)), is_rolling_(is_rolling) {}
  std::vector<dns::SigningKey> keys_;
  std::vector<KeyUse> uses_;
  bool is_rolling_;
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
