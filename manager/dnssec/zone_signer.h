#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "config/settings/zone_table.h"
#include "dns/name.h"
#include "zone/dnssec/set_signer.h"
#include "zone/dnssec/signing_denial.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// The keys that sign a zone here, and the times of their signatures. Any thread may use it; each
/// thread borrows a SetSigner.
class ZoneSigner {
 public:
  struct Options {
    std::uint64_t validity = zone::kValiditySeconds;  ///< seconds from now to the end of signatures
    config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
    zone::SigningDenial denial{};
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
  /// The same for a whole zone: the ends are spread over four sevenths of the period, so that the
  /// zone's signatures are not renewed all at once.
  [[nodiscard]] zone::SignatureTimes spread_times(std::uint64_t now) const noexcept;

  /// Whether a signature takes more than some 100 µs (RSA, P-384, Ed448), too long for a thread
  /// that others wait for.
  [[nodiscard]] bool is_slow() const noexcept;

  /// Whether the version has this signer's DNSKEY records, and the chain of NSEC or NSEC3 records
  /// that its options want. Else the zone is still to be signed as a whole.
  [[nodiscard]] bool has_signed(const zone::ZoneView& zone) const;

  /// Whether the version has signatures or keys that are not all this signer's.
  [[nodiscard]] bool is_signed_by_others(const zone::ZoneView& zone) const;
  /// Whether the clock lies more than a day before the SOA's newest signature: new ones would be
  /// worse than those that are there. `now` is seconds since 1970.
  [[nodiscard]] static bool is_clock_behind(const zone::ZoneView& zone, std::uint64_t now);

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
  Result<Owned> borrow() const;
  void give_back(Owned signer) const;

  dns::Name apex_;
  zone::SigningKeys keys_;
  Options options_;
  mutable std::mutex mutex_;
  mutable std::vector<Owned> unused_;
};
using ZoneSignerPtr = std::shared_ptr<const ZoneSigner>;

}  // namespace pando::manager
