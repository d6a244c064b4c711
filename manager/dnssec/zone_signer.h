#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/name.h"
#include "zone/dnssec/apex_key_sets.h"
#include "zone/dnssec/set_signer.h"
#include "zone/dnssec/signing_denial.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The keys that sign a zone here, and the times of their signatures. Any thread may use it; each
/// thread borrows a SetSigner.
class ZoneSigner {
 public:
  static constexpr std::uint64_t kRefreshSeconds = 5 * 86400;
  struct Options {
    std::uint64_t validity = zone::kValiditySeconds;  ///< seconds from now to the end of signatures
    config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
    zone::SigningDenial denial{};
    /// The least that is left of each signature, in seconds; less than five sixths of `validity`.
    std::uint64_t refresh = kRefreshSeconds;
    zone::ParentRequest parent_request = zone::ParentRequest::kNone;
    bool operator==(const Options&) const = default;
  };
  ZoneSigner(dns::NameView apex, zone::SigningKeys keys, const Options& options)
      : apex_(apex), keys_(std::move(keys)), options_(options) {}
  ZoneSigner(const ZoneSigner&) = delete;
  ZoneSigner& operator=(const ZoneSigner&) = delete;

  [[nodiscard]] const zone::SigningKeys& keys() const noexcept { return keys_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  /// Period of the signatures of one change. `now` is seconds since 1970.
  [[nodiscard]] zone::SignatureTimes times(std::uint64_t now) const noexcept {
    return {now - zone::kInceptionLead, now + options_.validity, 0};
  }
  /// The same for a whole zone: the ends are spread over the time before renewal is due, so that
  /// the zone's signatures are not renewed all at once.
  [[nodiscard]] zone::SignatureTimes spread_times(std::uint64_t now) const noexcept;
  /// Signatures that end before this time are renewed: a fifth of `refresh` is for the renewal.
  [[nodiscard]] std::uint64_t renewed_before(std::uint64_t now) const noexcept {
    return now + options_.refresh + options_.refresh / 5;
  }

  /// Whether a signature takes more than some 100 µs (RSA, P-384, Ed448), too long for a thread
  /// that others wait for.
  [[nodiscard]] bool is_slow() const noexcept;

  /// Whether the version has this signer's DNSKEY records, and the chain of NSEC or NSEC3 records
  /// that its options want. Else the zone is still to be signed as a whole. While keys follow
  /// others, it may have some of both.
  [[nodiscard]] bool has_signed(const zone::ZoneView& zone) const;
  /// The way in which the version denies names, if it has this signer's DNSKEY records. Its changes
  /// are signed in that way until it is signed as a whole in another one. Nullopt: it has not, or
  /// denies names in a way that no policy has.
  [[nodiscard]] std::optional<zone::SigningDenial> denial_of(const zone::ZoneView& zone) const;

  /// The sets at the apex that name the keys: zone::apex_key_sets().
  [[nodiscard]] std::vector<zone::MadeSet> key_sets(dns::Ttl ttl) const {
    return zone::apex_key_sets(apex_, keys_, ttl, options_.parent_request);
  }
  /// Whether the version has just these sets, with the TTL of its SOA.
  [[nodiscard]] bool has_key_sets(const zone::ZoneView& zone) const;

  /// Whether the version has signatures or keys that are not all this signer's.
  [[nodiscard]] bool is_signed_by_others(const zone::ZoneView& zone) const;
  /// Whether the version has DNSKEY records, and those of some key here are not among them, although
  /// no keys follow others. A signature of such a key would be bogus for whoever has the DNSKEY
  /// records in his cache.
  [[nodiscard]] bool has_new_keys(const zone::ZoneView& zone) const;
  /// Whether both have the same keys, with the same uses.
  [[nodiscard]] bool has_keys_of(const ZoneSigner& other) const;

  /// Times in seconds since 1970; 0: there is no signature.
  struct LastSignature {
    std::uint64_t made = 0;
    std::uint64_t end = 0;
  };
  /// The times of the SOA's newest signature. `now` is one such time, because signatures have 32 bits
  /// of theirs (RFC 4034 §3.1.5).
  [[nodiscard]] static LastSignature last_signature(const zone::ZoneView& zone, std::uint64_t now);

  /// Calls `work(SetSigner&)` with a signer that no other thread uses meanwhile. OpenSSL's contexts
  /// take as long to make as some signatures, so they are kept. kUnsupported: OpenSSL does not sign
  /// with an algorithm of the keys.
  template <class Work>
  Status with_set_signer(std::uint64_t now, Work&& work) const {
    auto borrowed = borrow();
    if (!borrowed) return pass(borrowed);
    (*borrowed)->set_times(times(now));
    const Status done = work(**borrowed);
    give_back(std::move(*borrowed));
    return done;
  }

 private:
  using Owned = std::unique_ptr<zone::SetSigner>;
  [[nodiscard]] bool is_ours(const Bytes& dnskey) const;
  [[nodiscard]] bool has_published_keys(const zone::ZoneView& zone) const;
  Result<Owned> borrow() const;
  void give_back(Owned signer) const;

  dns::Name apex_;
  zone::SigningKeys keys_;
  Options options_;
  mutable std::mutex mutex_;
  mutable std::vector<Owned> unused_;
};
using ZoneSignerPtr = std::shared_ptr<const ZoneSigner>;

/// Whether somebody's DNSKEY records or signatures are in the zone. Its parent may have DS records
/// of these keys, so that another key would make the zone bogus.
[[nodiscard]] bool has_signers_records(const zone::ZoneView& zone);

}  // namespace pando::manager
