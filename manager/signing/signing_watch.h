#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "manager/commit/committer.h"
#include "manager/signing/signature_look.h"
#include "manager/signing/signed_zones.h"
#include "shm/store.h"

namespace pando::manager {

/// Learns from each look at a signed zone what has become visible, so that the zone's next stage can
/// begin, and raises alarms when signatures are not renewed in time. Lives on the commit thread.
class SigningWatch {
 public:
  /// References outlive the object.
  SigningWatch(shm::Store& store, const Committer& committer, SignedZones& zones)
      : store_(store), committer_(committer), zones_(zones) {}

  /// A look at a zone that `signer` has signed is over. Later versions are like the one that was
  /// looked at, as long as the zone has this signer.
  void looked(const dns::Name& zone, const ZoneSignerPtr& signer, const SignatureLook& look);
  /// The keys of a zone cannot be used, so that no look at it tells when its signatures end.
  /// `refresh` is that of its policy, in seconds.
  void keys_unusable(const dns::Name& zone, std::uint64_t refresh);
  /// Forgets zones that have no policy any more.
  void forget_gone();
  /// The zone's signatures were taken away.
  void was_unsigned(const dns::Name& zone);
  /// Notes that again where it could not be written, each kRetry; to be called regularly.
  void retry(std::chrono::steady_clock::time_point now);
  static constexpr std::chrono::seconds kRetry{10};

  /// That signatures of the zone are late, in one line; empty: they are not.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  [[nodiscard]] std::uint64_t zones_late() const noexcept { return late_.size(); }

 private:
  struct Late {
    std::uint64_t first_end = 0;  // seconds since 1970
    std::uint64_t told_at = 0;    // signing time of the last line in the log
    bool is_urgent = false;
  };
  void note_stage(const dns::Name& zone, const SignatureLook& look);
  void note_ttl(const dns::Name& zone, std::uint64_t ttl, const SigningFacts& facts);
  void check_end(const dns::Name& zone, std::uint64_t first_end, std::uint64_t refresh);

  shm::Store& store_;
  const Committer& committer_;
  SignedZones& zones_;
  std::map<std::string, Late> late_;  // by dns::folded_key()
  std::set<std::string> unwritten_;   // unsigned zones whose fact could not be written
  std::chrono::steady_clock::time_point next_retry_{};
};

}  // namespace pando::manager
